// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * Runs the examples: what they print is what they say, and what C's print, which are asked for it; the
 * trainers learn the same bits: -Ddist.tpu_split=PROGRAM -Ddist.training_loop=PROGRAM
 * -Ddist.train_digits=PROGRAM -Ddist.digits=FILE.
 */
public final class ExamplesTest {
    private ExamplesTest() {}

    public static void main(String[] args) {
        Tap tap = new Tap();
        tap.add("AllReduce",
                () -> prints("AllReduce",
                                List.of("replica 0: 4.0 6.0 2.0", "replica 1: 4.0 6.0 2.0",
                                        "replica 2: 4.0 6.0 2.0", "replica 3: 4.0 6.0 2.0",
                                        "run: row 7 of the data is broken",
                                        "replica 0: ABORTED, replica 2 failed")));
        tap.add("BatchReduceTo", () -> prints("BatchReduceTo", List.of("v 2.0", "v/replica_1 2.0")));
        tap.add("Overlap", () -> prints("Overlap", List.of("mean loss 1.5", "last gradient 42.0")));
        tap.add("ThreadPool", () -> prints("ThreadPool", List.of("sum 3.0", "sum 3.0", "sum 3.0")));
        tap.add("TpuSplit prints what C's prints", ExamplesTest::tpuSplit);
        tap.add("TrainingLoop prints what C's prints", ExamplesTest::trainingLoop);
        tap.add("Digits learns the bits that C's learns", ExamplesTest::digits);
        tap.runAll();
    }

    private static void prints(String program, List<String> lines) throws ReflectiveOperationException {
        equal(lines, output(program));
    }

    private static List<String> output(String program, String... args) throws ReflectiveOperationException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        PrintStream before = System.out;
        System.setOut(new PrintStream(bytes, true, StandardCharsets.UTF_8));
        try {
            Class.forName(program).getMethod("main", String[].class).invoke(null, (Object) args);
        } finally {
            System.setOut(before);
        }
        return bytes.toString(StandardCharsets.UTF_8).lines().toList();
    }

    /** What a program of C's prints, if it was built. */
    private static List<String> ofC(String property, String... args)
            throws IOException, InterruptedException {
        String[] command = new String[args.length + 1];
        command[0] = System.getProperty(property);
        System.arraycopy(args, 0, command, 1, args.length);
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        check(process.waitFor() == 0, output);
        return output.lines().toList();
    }

    private static boolean isThere(String property) {
        if (System.getProperty(property) == null) {
            System.out.println("# C's examples were not built: nothing to compare with");
            return false;
        }
        return true;
    }

    private static void tpuSplit() throws Exception {
        List<String> printed = output("TpuSplit");
        equal(9, printed.size());
        equal("logical device 0: rows 0-1, columns 0-1, first pixel 1000", printed.get(0));
        equal("logical device 7: rows 2-3, columns 6-7, first pixel 934", printed.get(7));
        equal("all 384 pixels: 0 wrong", printed.get(8));
        if (isThere("dist.tpu_split")) {
            equal(ofC("dist.tpu_split"), printed);
        }
    }

    private static void trainingLoop() throws Exception {
        for (String replicas : new String[] {"1", "2", "3"}) {
            List<String> printed = output("TrainingLoop", replicas);
            check(printed.get(printed.size() - 1).startsWith("weights "), printed);
            if (isThere("dist.training_loop")) {
                equal(ofC("dist.training_loop", replicas), printed);
            }
        }
    }

    private static void digits() throws Exception {
        for (String[] how : new String[][] {{"2", "ordered"}, {"1", "reproducible"}, {"3", "reproducible"}}) {
            List<String> printed = output("digits.Digits", "--data", System.getProperty("dist.digits"),
                    "--replicas", how[0], "--epochs", "2", "--numerics", how[1]);
            String parameters = printed.get(printed.size() - 1);
            check(parameters.startsWith("parameters: "), printed);
            if (isThere("dist.train_digits")) {
                List<String> of =
                        ofC("dist.train_digits", "--replicas", how[0], "--epochs", "2", "--numerics", how[1]);
                check(of.contains(parameters), Arrays.asList(how), parameters, of);
            }
        }
    }
}
