// SPDX-License-Identifier: Apache-2.0

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.libdist.Aggregation;
import org.libdist.Assign;
import org.libdist.Checkpoint;
import org.libdist.Strategy;
import org.libdist.Tensors;
import org.libdist.Value;
import org.libdist.Variable;
import org.libdist.VariableOptions;

/**
 * checkpoints.c in Java: saves a checkpoint after each step, keeps the last two, and continues with more replicas.
 *
 * <p>The argument replaces "step", with which the names of the files begin.
 */
public final class Checkpoints {
    private static final int KEPT = 2;
    private static final String END = ".safetensors";

    private final Path folder;
    private final String start;

    private Checkpoints(Path prefix) {
        folder = prefix.toAbsolutePath().getParent();
        start = prefix.getFileName() + "-";
    }

    /** Returns the paths of the files, the latest one last. */
    private List<Path> files() throws IOException {
        try (Stream<Path> all = Files.list(folder)) {
            return all.filter(path -> path.getFileName().toString().startsWith(start) && path.toString().endsWith(END))
                    .sorted()
                    .toList();
        }
    }

    private int stepOf(Path path) {
        String name = path.getFileName().toString();
        return Integer.parseInt(name.substring(start.length(), name.length() - END.length()));
    }

    private void train(int replicas, int lastStep) throws IOException {
        VariableOptions options = VariableOptions.DEFAULT.name("w").aggregation(Aggregation.SUM);
        try (Strategy strategy = Strategy.create(replicas);
                Variable w = Variable.create(strategy, Tensors.scalar(0.0), options)) {
            int step = 0;
            List<Path> found = files();
            if (!found.isEmpty()) {
                Path latest = found.get(found.size() - 1);
                Checkpoint.load(strategy, latest, List.of(w));
                step = stepOf(latest);
            }
            try (Value value = w.read(strategy)) {
                double now = value.tensor().doubles().get(0);
                System.out.printf("%d replicas start after step %d: w = %.0f%n", replicas, step, now);
            }
            while (step < lastStep) {
                // All replicas together add 1.
                strategy.run(replica -> w.assign(replica, Assign.ADD, Tensors.scalar(1.0 / replica.numReplicas())));
                step++;
                Checkpoint.save(strategy, folder.resolve(start + String.format("%06d", step) + END), List.of(w));
                List<Path> saved = files();
                for (Path old : saved.subList(0, Math.max(0, saved.size() - KEPT))) {
                    Files.delete(old); // only after the new one is complete
                }
            }
        }
    }

    public static void main(String[] args) throws IOException {
        Checkpoints checkpoints = new Checkpoints(Path.of(args.length > 0 ? args[0] : "step"));
        checkpoints.train(2, 5);
        checkpoints.train(4, 7);
        for (Path path : checkpoints.files()) {
            Files.delete(path);
            System.out.printf("step %d was left%n", checkpoints.stepOf(path));
        }
    }
}
