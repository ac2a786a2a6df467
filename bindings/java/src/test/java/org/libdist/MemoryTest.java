// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;
import static org.libdist.Tensors.copyOf;

import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The memory of objects that a program forgets to close is bounded, a view keeps its object alive, and short calls
 * allocate little.
 */
public final class MemoryTest {
    private static final int ELEMENTS = 1 << 20;
    private static final long LARGE_BYTES = 4L * ELEMENTS;
    private static final int FORGOTTEN = 250; // 1 GiB of each kind
    private static final long MOST_RESIDENT_KIB = 900 << 10;
    private static final int CALLS = 200;
    private static final long SMALLEST_OBJECT_BYTES = 16;
    private static final long MOST_BYTES_OF_RUN = 600; // by the caller, who is a replica too

    private MemoryTest() {}

    static void addTo(Tap tap) {
        tap.add("what is forgotten is bounded", () -> equal("bounded\n", child("forgotten")));
        tap.add("what is in use costs no collections", () -> equal("few collections\n", child("used")));
        tap.add("a scope closes many values at once", MemoryTest::scope);
        tap.add("a scope's misuse is refused", MemoryTest::scopeMisuse);
        tap.add("views keep what they look into", MemoryTest::views);
        tap.add("collectives of one buffer allocate nothing", MemoryTest::collectives);
        tap.add("runs need no new tokens, and few bytes", MemoryTest::runs);
        tap.add("a failed run leaves nothing to the next", MemoryTest::failedRuns);
    }

    private static String child(String what) throws IOException, InterruptedException {
        return Jvm.run(List.of("-Xmx128m"), MemoryTest.class, what);
    }

    /** The other JVM's program. */
    public static void main(String[] args) throws Exception {
        if (args[0].equals("forgotten")) {
            forgotten();
            System.out.println("bounded");
        } else {
            used();
            System.out.println("few collections");
        }
    }

    private static void forgotten() throws Exception {
        Tensor large = Tensor.zeros(DType.F32, ELEMENTS);
        try (Strategy strategy = Strategy.create(2)) {
            Value perReplica = Value.createPerReplica(strategy,
                    List.of(Value.createTensor(strategy, large), Value.createTensor(strategy, large)));
            bounded(() -> Value.createTensor(strategy, large));
            bounded(() -> Value.createTensor(strategy, large).tensor().floats());
            bounded(() -> strategy.reduce(ReduceOp.SUM, perReplica).retain());
            bounded(() -> strategy.run(replica -> Value.createTensor(strategy, large)));
            bounded(() -> Variable.create(strategy, "w", large));
            bounded(() -> Dataset.fromTensors(
                                    strategy, List.of(large), DatasetOptions.DEFAULT.globalBatchSize(2)));
        }
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) {
                check(Long.parseLong(line.replaceAll("\\D", "")) < MOST_RESIDENT_KIB, line);
            }
        }
    }

    private static void bounded(Tap.Test make) throws Exception {
        for (int i = 0; i < FORGOTTEN; i++) {
            make.run();
            check(Pressure.heldBytes() <= 2 * Pressure.FLOOR_BYTES + 8 * LARGE_BYTES, i,
                    Pressure.heldBytes());
        }
    }

    private static long collections() {
        return ManagementFactory.getGarbageCollectorMXBeans()
                .stream()
                .mapToLong(GarbageCollectorMXBean::getCollectionCount)
                .sum();
    }

    private static void used() {
        Tensor large = Tensor.zeros(DType.F32, ELEMENTS);
        Tensor small = copyOf(new float[] {1});
        try (Strategy strategy = Strategy.create(1)) {
            List<Value> held = new ArrayList<>();
            while (Pressure.heldBytes() < 3 * Pressure.FLOOR_BYTES) {
                held.add(Value.createTensor(strategy, large));
            }
            long before = collections();
            for (int i = 0; i < 1000; i++) {
                Value.createTensor(strategy, small).close();
            }
            check(collections() - before < 10, collections() - before);
            held.forEach(Value::close);
        }
    }

    private static long allocatedBytes() {
        return ((com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean())
                .getThreadAllocatedBytes(Thread.currentThread().getId());
    }

    private static void collectives() {
        try (Strategy strategy = Strategy.create(2)) {
            CollectiveOptions tagged = CollectiveOptions.DEFAULT.tag("tag");
            long[] bytes = new long[2];
            strategy.run(replica -> {
                FloatBuffer data = DirectBuffers.floats(256);
                long before = 0;
                for (int i = 0; i < 2 * CALLS; i++) {
                    if (i == CALLS) { // all classes are loaded
                        before = allocatedBytes();
                    }
                    replica.allReduce(ReduceOp.MAX, data);
                    replica.allReduce(ReduceOp.MAX, data, tagged);
                    replica.broadcast(0, data, tagged);
                    replica.barrier();
                }
                bytes[replica.id()] = (allocatedBytes() - before) / CALLS;
            });
            for (long each : bytes) { // allocatedBytes() allocates, but less than one object for each call
                check(each < SMALLEST_OBJECT_BYTES, each);
            }
        }
    }

    private static void runs() {
        try (Strategy strategy = Strategy.create(2)) {
            RunFunction<RuntimeException> nothing = replica -> {};
            for (int i = 0; i < CALLS; i++) {
                strategy.run(nothing);
            }
            long token = Upcalls.lastToken();
            long before = allocatedBytes();
            for (int i = 0; i < CALLS; i++) {
                strategy.run(nothing);
            }
            long each = (allocatedBytes() - before) / CALLS;
            check(each <= MOST_BYTES_OF_RUN, each);
            equal(token, Upcalls.lastToken());
        }
    }

    private static void failedRuns() throws Exception {
        long before = Upcalls.lastToken();
        try (Strategy strategy = Strategy.create(2)) {
            for (int i = 0; i < 6; i++) {
                int run = i;
                IOException thrown = new IOException("run " + i);
                Throwable caught = null;
                try {
                    strategy.<IOException>run(replica -> {
                        check(Replica.current() == replica, replica.id());
                        if (run % 2 == 1 && replica.id() == 1) {
                            throw thrown;
                        }
                    });
                } catch (IOException e) {
                    caught = e;
                }
                check(caught == (run % 2 == 1 ? thrown : null), run);
                equal(run % 2 == 1 ? 0 : 1, Upcalls.runsSince(before));
            }
            strategy.run(replica -> {});
        }
        equal(0, Upcalls.runsSince(before));
    }

    private static void scope() {
        try (Strategy strategy = Strategy.create(2)) {
            long before = Upcalls.lastToken(); // each object has a token, until its value is closed
            Value kept;
            Value outer;
            try (ValueScope all = ValueScope.create()) {
                outer = Value.wrapObject(strategy, "outer");
                try (ValueScope scope = ValueScope.create()) {
                    List<Value> objects = new ArrayList<>();
                    for (int i = 0; i < 100; i++) {
                        objects.add(Value.wrapObject(strategy, i));
                    }
                    Value.wrapObject(strategy, "closed by hand").close();
                    Value list = Value.createList(strategy, objects);
                    equal(101, scope.size());
                    equal(101, Upcalls.sizeSince(before));
                    kept = all.keep(scope.keep(list.item(7).retain()));
                    outer = scope.keep(outer);
                    strategy.run(replica -> equal(1, onAnotherThread(strategy, replica.id())));
                    equal(101, scope.size());
                }
                equal(2, Upcalls.sizeSince(before));
                equal(1, all.size());
                equal("outer", outer.object());
            }
            equal(1, Upcalls.sizeSince(before));
            equal(7, kept.object());
            kept.close();
            equal(0, Upcalls.sizeSince(before));
        }
    }

    /** The innermost scope is the thread's own. */
    private static int onAnotherThread(Strategy strategy, int id) {
        try (ValueScope scope = ValueScope.create()) {
            Value.createText(strategy, "of replica " + id);
            return scope.size();
        }
    }

    private static void scopeMisuse() throws InterruptedException {
        ValueScope first = ValueScope.create();
        ValueScope second = ValueScope.create();
        equal(Status.FAILED_PRECONDITION, thrown(DistException.class, first::close).status());
        Thread stranger = new Thread(
                () -> equal(Status.FAILED_PRECONDITION, thrown(DistException.class, second::close).status()));
        stranger.start();
        stranger.join();
        second.close();
        second.close();
        first.close();
    }

    private static void views() throws Exception {
        List<FloatBuffer> views = new ArrayList<>();
        try (Strategy strategy = Strategy.create(2)) {
            for (int i = 0; i < 8; i++) {
                Tensor tensor = copyOf(new float[] {i, i + 1});
                views.add(Value.createTensor(strategy, tensor).tensor().floats());
                try (Value nest = Value.createTuple(strategy, Value.createTensor(strategy, tensor))) {
                    views.add(nest.item(0).tensor().floats().slice());
                }
                try (Variable variable = Variable.create(strategy, "w", tensor)) {
                    views.add(variable.component(1).floats().duplicate());
                }
                Dataset once = Dataset.fromTensors(
                        strategy, List.of(tensor), DatasetOptions.DEFAULT.globalBatchSize(2));
                try (BatchIterator pass = once.iterator(); Value batch = pass.next()) {
                    views.add(strategy.localResults(batch).item(0).tensor().floats());
                }
                once.close();
            }
        }
        for (int round = 0; round < 5; round++) {
            System.gc();
            Thread.sleep(10); // for the cleaner: whatever it takes must not be what is looked at
        }
        for (int i = 0; i < views.size(); i++) {
            equal((float) (i / 4), views.get(i).get(0));
        }
    }
}
