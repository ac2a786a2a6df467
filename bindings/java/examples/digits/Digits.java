// SPDX-License-Identifier: Apache-2.0

package digits;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.libdist.CollectiveOptions;
import org.libdist.Dataset;
import org.libdist.Numerics;
import org.libdist.ReduceOp;
import org.libdist.Replica;
import org.libdist.Strategy;
import org.libdist.Tensor;
import org.libdist.Tensors;
import org.libdist.Value;
import org.libdist.Variable;

/**
 * Trains a small neural network on handwritten digits, data-parallel: each replica computes gradients on its
 * part of the batch, the gradients are summed, and every replica applies the same update to its own copy of
 * the parameters. With `--numerics reproducible`, the bits of the parameters do not depend on the number of
 * replicas and equal those of the C program in examples/digits.
 *
 * <p>{@code Digits [--data FILE] [--replicas N] [--epochs N] [--seed N] [--numerics ordered|reproducible]}
 */
public final class Digits {
    private static final float RATE = 0.1f;
    private static final int CLASSES = 10;

    private final Strategy strategy;
    private final Numerics numerics;
    private final List<Variable> variables = new ArrayList<>();
    private final Network[] networks; // one per replica
    private final List<List<List<Tensor>>> gradients =
            new ArrayList<>(); // per replica, per micro-batch
    private int batchRows; // rows of the current global batch

    private Digits(Strategy strategy, Numerics numerics, int features, long seed) {
        this.strategy = strategy;
        this.numerics = numerics;
        int[] sizes = {features, 256, 320, CLASSES};
        Data.Random random = new Data.Random(seed);
        for (int l = 0; l < Network.LAYERS; l++) {
            float bound = (float) Math.sqrt(6f / sizes[l]);
            float[] weights = new float[sizes[l] * sizes[l + 1]];
            for (int i = 0; i < weights.length; i++) {
                weights[i] = bound * random.signedUnit();
            }
            String layer = "layer" + (l + 1);
            variables.add(Variable.create(
                    strategy, layer + "/weights", Tensors.copyOf(weights, sizes[l], sizes[l + 1])));
            variables.add(
                    Variable.create(strategy, layer + "/biases", Tensors.copyOf(new float[sizes[l + 1]])));
        }
        int replicas = strategy.numReplicas();
        int parts = numerics == Numerics.REPRODUCIBLE ? (Data.MICRO_BATCHES + replicas - 1) / replicas : 1;
        networks = new Network[replicas];
        for (int r = 0; r < replicas; r++) {
            networks[r] = new Network(sizes, Math.max(Data.MICRO_BATCH_ROWS, Data.BATCH_ROWS / replicas + 1));
            List<List<Tensor>> own = new ArrayList<>();
            for (int j = 0; j < parts; j++) {
                own.add(networks[r].newGradients());
            }
            gradients.add(own);
        }
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> given = new TreeMap<>(Map.of("--data", "examples/data/digits.csv", "--replicas",
                "2", "--epochs", "40", "--seed", "1", "--numerics", "ordered"));
        for (int i = 0; i + 1 < args.length; i += 2) {
            given.put(args[i], args[i + 1]);
        }
        long seed = Long.parseLong(given.get("--seed"));
        Numerics numerics = Numerics.valueOf(given.get("--numerics").toUpperCase());
        Data[] parts = Data.read(Path.of(given.get("--data")), seed);
        try (Strategy strategy = Strategy.create(Integer.parseInt(given.get("--replicas")));
                Dataset train = parts[0].toDataset(strategy, numerics == Numerics.REPRODUCIBLE, true, seed);
                Dataset test = parts[1].toDataset(strategy, false, false, seed)) {
            Digits digits = new Digits(strategy, numerics, parts[0].features, seed);
            for (int epoch = 1; epoch <= Integer.parseInt(given.get("--epochs")); epoch++) {
                double loss = digits.pass(train, true)[0] / parts[0].rows;
                double accuracy = digits.pass(test, false)[1] / parts[1].rows;
                System.out.printf("epoch %d: loss %.4f, test accuracy %.3f%n", epoch, loss, accuracy);
            }
            System.out.println("parameters: " + digits.digest());
        }
    }

    /** Runs one pass over a dataset. Returns the sum of the losses and the number of correct rows. */
    private double[] pass(Dataset dataset, boolean training) {
        double[] score = new double[2];
        for (Value batch : dataset) {
            batchRows = countRows(batch);
            try (batch; Value scores = strategy.run(
                                (replica, args, kwargs) -> step(replica, args, training), batch);
                    Value sum = strategy.reduce(ReduceOp.SUM, scores)) {
                score[0] += sum.tensor().doubles().get(0);
                score[1] += sum.tensor().doubles().get(1);
            }
        }
        return score;
    }

    /** Counts the rows of a batch over all replicas, by its labels. */
    private static int countRows(Value batch) {
        Value labels = batch.item(1);
        int rows = 0;
        for (Value part : labels.size() == 0 ? List.of(labels) : labels.items()) {
            for (int label : Tensors.toInts(part.tensor())) {
                rows += label != Data.NO_LABEL ? 1 : 0;
            }
        }
        return rows;
    }

    /**
     * Runs on every replica with its part of the batch, (features, labels): rows, or micro-batches of rows.
     */
    private Value step(Replica replica, Value args, boolean training) {
        Tensor features = args.item(0).tensor();
        int[] labels = Tensors.toInts(args.item(1).tensor());
        float[] values = Tensors.toFloats(features);
        boolean micro = features.numDimensions() == 3 && features.shape(0) > 0;
        int count = micro ? (int) features.shape(0) : 1;
        int rows = labels.length / count;
        int columns = (int) features.shape(features.numDimensions() - 1);

        Network network = networks[replica.id()];
        List<Tensor> copies = variables.stream().map(variable -> variable.component(replica.id())).toList();
        network.read(copies);
        double[] score = new double[2];
        for (int j = 0; j < count; j++) {
            Network.Batch batch = part(values, labels, j * rows, rows, columns);
            network.forward(batch);
            score[0] += network.loss(batch);
            score[1] += network.correct(batch);
            if (training) {
                network.backward(batch, 1f / batchRows, gradients.get(replica.id()).get(j));
            }
        }
        if (training) {
            descend(replica, copies, count);
        }
        return Value.createTensor(replica.strategy(), Tensors.copyOf(score));
    }

    /** Returns rows first to first + rows - 1 without padding rows at the end. */
    private static Network.Batch part(float[] values, int[] labels, int first, int rows, int columns) {
        int last = first + rows;
        while (last > first && labels[last - 1] == Data.NO_LABEL) {
            last--;
        }
        return new Network.Batch(last - first, Arrays.copyOfRange(values, first * columns, last * columns),
                Arrays.copyOfRange(labels, first, last));
    }

    /**
     * Sums the gradients of all micro-batches of all replicas in place and updates this replica's copies of
     * the variables.
     */
    private void descend(Replica replica, List<Tensor> copies, int count) {
        List<List<Tensor>> own = gradients.get(replica.id());
        List<Tensor> all = own.subList(0, count).stream().flatMap(List::stream).toList();
        replica.allReduce(ReduceOp.SUM, all, own.get(0),
                CollectiveOptions.DEFAULT.tag("gradients").numerics(numerics).contributions(count));
        for (int t = 0; t < copies.size(); t++) {
            FloatBuffer parameter = copies.get(t).floats();
            FloatBuffer gradient = own.get(0).get(t).floats();
            for (int i = 0; i < parameter.capacity(); i++) {
                parameter.put(i, parameter.get(i) - RATE * gradient.get(i));
            }
        }
    }

    /** The SHA-256 of all variables in order, as little-endian floats: equal digests mean equal bits. */
    private String digest() throws Exception {
        MessageDigest sha = MessageDigest.getInstance("SHA-256");
        for (Variable variable : variables) {
            variable.checkDrift(strategy);
            float[] values = Tensors.toFloats(variable.component(0));
            ByteBuffer bytes = ByteBuffer.allocate(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
            bytes.asFloatBuffer().put(values);
            sha.update(bytes);
        }
        return HexFormat.of().formatHex(sha.digest());
    }
}
