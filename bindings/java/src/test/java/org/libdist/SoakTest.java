// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;

import java.io.IOException;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Many calls with flat memory; -Ddist.soak=N says how many of each kind. In a JVM of its own, whose heap is
 * there from the start: what grows then is native.
 */
public final class SoakTest {
    private static final int CALLS = Integer.getInteger("dist.soak", 100_000);
    private static final long GROWTH_KIB = 32 << 10;

    private SoakTest() {}

    static void addTo(Tap tap) {
        tap.add("many collectives, runs and values with flat memory", SoakTest::flatInAJvm);
    }

    private static void flatInAJvm() throws IOException, InterruptedException {
        System.out.print(Jvm.run(
                List.of("-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch", "-Xcheck:jni", "-Ddist.soak=" + CALLS),
                SoakTest.class));
    }

    /** The program of that JVM. */
    public static void main(String[] args) throws IOException {
        flat();
    }

    private static void flat() throws IOException {
        try (Strategy strategy = Strategy.create(2)) {
            round(strategy, CALLS / 10); // warm: code is compiled, arenas are there
            long before = residentKib();
            round(strategy, CALLS);
            System.gc();
            long after = residentKib();
            System.out.printf("# resident memory: %d KiB before, %d KiB after%n", before, after);
            check(after - before < GROWTH_KIB, before, after);
        }
    }

    private static void round(Strategy strategy, int calls) {
        CollectiveOptions options = CollectiveOptions.DEFAULT.tag("a tag that is longer than others");
        strategy.run(replica -> {
            FloatBuffer data = DirectBuffers.of(1f);
            Tensor listed = Tensors.copyOf(new float[] {1, 2, 3});
            for (int i = 0; i < calls; i++) {
                replica.allReduce(ReduceOp.MEAN, data, options);
            }
            for (int i = 0; i < calls / 10; i++) {
                replica.allReduce(ReduceOp.MEAN, List.of(listed), options);
                replica.async().barrier(CollectiveOptions.DEFAULT).join();
            }
        });
        Value args =
                Value.createTuple(strategy, Value.createTensor(strategy, Tensors.copyOf(new float[10_000])));
        for (int i = 0; i < calls / 10; i++) {
            strategy.run(replica -> {});
            try (Value result = strategy.run((replica, given, kwargs) -> given.item(0), args)) {
                check(result.tensor().floats().get(9) == 0f);
            }
            try {
                strategy.device(7);
            } catch (DistException e) {
                check(e.status() == Status.INVALID_ARGUMENT, e);
            }
        }
        args.close();
    }

    private static long residentKib() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("\\D", ""));
            }
        }
        throw new IOException("no VmRSS");
    }
}
