// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.libdist.Strategy;

/**
 * Measures libdist from Java for dist_bench, which starts it as `Bench REPLICAS`, tells it what to measure, and compares it
 * with C. They exchange the lines of ../../peers/protocol.hpp on stdin and stdout.
 */
public final class Bench {
    /** A JVM interprets code before it compiles it, which does not matter in programs that run for long. */
    private static final long WARM_UP_NANOS = 1_000_000_000L;

    private final Measurement measurement;
    private final Set<String> warm = new HashSet<>();

    private Bench(Strategy strategy) {
        measurement = new Measurement(strategy);
    }

    public static void main(String[] args) throws IOException {
        try (Strategy strategy = Strategy.create(Integer.parseInt(args[0]))) {
            Bench bench = new Bench(strategy);
            say(List.of("@ready", "Java " + System.getProperty("java.version"), "")); // the only form has no name
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null && !line.equals("quit"); line = lines.readLine()) {
                say(bench.answer(line.split("\t", -1)));
            }
        }
    }

    private static void say(List<String> words) {
        System.out.println(String.join("\t", words));
    }

    private List<String> answer(String[] words) {
        if (words.length != 9 || !words[0].equals("measure")) {
            return List.of("@no", "no such command");
        }
        String operation = words[2];
        int elements = Integer.parseInt(words[4]) / Float.BYTES;
        Plan plan = new Plan(Integer.parseInt(words[7]), Integer.parseInt(words[8]));
        boolean reduces = operation.equals("all_reduce") && words[3].equals("f32") && words[5].equals("in_place");
        if (!words[6].equals("hot") || !reduces && !operation.equals("run") && !operation.equals("barrier")) {
            return List.of("@no", "not offered");
        }
        try {
            if (warm.add(operation + elements)) {
                for (long begin = System.nanoTime(); System.nanoTime() - begin < WARM_UP_NANOS;) {
                    samples(operation, plan, elements);
                }
            }
            List<String> times = new ArrayList<>(List.of("@times"));
            for (double us : samples(operation, plan, elements)) {
                times.add(String.format(Locale.ROOT, "%.4f", us));
            }
            return times;
        } catch (Tensors.WrongResult e) {
            return List.of("@failed", e.getMessage());
        }
    }

    private double[] samples(String operation, Plan plan, int elements) throws Tensors.WrongResult {
        switch (operation) {
            case "run":
                return measurement.emptyRuns(plan);
            case "barrier":
                return measurement.barriers(plan);
            default:
                return measurement.allReduces(plan, elements);
        }
    }
}
