// SPDX-License-Identifier: Apache-2.0

package digits;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.libdist.Dataset;
import org.libdist.DatasetOptions;
import org.libdist.Strategy;
import org.libdist.Tensors;

/** The rows of the digits, split into a training part and a held-out part, with scaled features. */
final class Data {
    static final int BATCH_ROWS = 64; // per global batch
    static final int MICRO_BATCH_ROWS = 8;
    static final int MICRO_BATCHES = BATCH_ROWS / MICRO_BATCH_ROWS;
    static final int NO_LABEL = -1; // the label of a padding row

    final int rows;
    final int features;
    private final float[] values;
    private final int[] labels;

    private Data(int rows, int features) {
        this.rows = rows;
        this.features = features;
        int filledUp = microBatches() * MICRO_BATCH_ROWS;
        values = new float[filledUp * features];
        labels = new int[filledUp];
        Arrays.fill(labels, NO_LABEL);
    }

    private int microBatches() {
        return (rows + MICRO_BATCH_ROWS - 1) / MICRO_BATCH_ROWS;
    }

    /** Returns the training part and the held-out part. */
    static Data[] read(Path csv, long seed) throws IOException {
        List<String> lines = Files.readAllLines(csv);
        int columns = lines.get(0).split(",").length;
        int heldOut = lines.size() / 5;
        Data[] parts = {new Data(lines.size() - heldOut, columns - 1), new Data(heldOut, columns - 1)};
        int[] order = new Random(seed).shuffled(lines.size());
        for (int i = 0; i < order.length; i++) {
            Data part = i < parts[0].rows ? parts[0] : parts[1];
            part.set(i < parts[0].rows ? i : i - parts[0].rows, lines.get(order[i]).split(","));
        }
        float[] largest = new float[columns - 1];
        for (int i = 0; i < parts[0].rows * parts[0].features; i++) {
            int j = i % parts[0].features;
            largest[j] = Math.max(largest[j], Math.abs(parts[0].values[i]));
        }
        for (Data part : parts) {
            for (int i = 0; i < part.rows * part.features; i++) {
                float by = largest[i % part.features];
                part.values[i] = by > 0 ? part.values[i] / by : part.values[i];
            }
        }
        return parts;
    }

    private void set(int row, String[] fields) {
        for (int j = 0; j < features; j++) {
            values[row * features + j] = Float.parseFloat(fields[j].trim());
        }
        labels[row] = Integer.parseInt(fields[features].trim());
    }

    /**
     * Batches of (features, labels). If the elements are rows, a replica receives tensors of shape [rows,
     * ...]. If they are micro-batches, it receives [micro-batches, 8, ...], and a batch contains the same
     * micro-batches for any number of replicas.
     */
    Dataset toDataset(Strategy strategy, boolean microBatches, boolean shuffle, long seed) {
        DatasetOptions options =
                DatasetOptions.DEFAULT.globalBatchSize(microBatches ? MICRO_BATCHES : BATCH_ROWS);
        options = shuffle ? options.shuffle(seed) : options;
        if (microBatches) {
            return Dataset.fromTensors(strategy,
                    List.of(Tensors.copyOf(values, microBatches(), MICRO_BATCH_ROWS, features),
                            Tensors.copyOf(labels, microBatches(), MICRO_BATCH_ROWS)),
                    options);
        }
        return Dataset.fromTensors(strategy,
                List.of(Tensors.copyOf(Arrays.copyOf(values, rows * features), rows, features),
                        Tensors.copyOf(Arrays.copyOf(labels, rows))),
                options);
    }

    /** SplitMix64, which is easy to reproduce in any language. */
    static final class Random {
        private long state;

        Random(long seed) {
            state = seed;
        }

        private long bits() {
            state += 0x9e3779b97f4a7c15L;
            long z = (state ^ state >>> 30) * 0xbf58476d1ce4e5b9L;
            z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
            return z ^ z >>> 31;
        }

        /** Returns a number in [-1, 1). */
        float signedUnit() {
            return (float) (bits() >>> 40) * 0x1p-23f - 1f;
        }

        int[] shuffled(int n) {
            int[] order = new int[n];
            for (int i = 0; i < n; i++) {
                order[i] = i;
            }
            for (int i = n - 1; i > 0; i--) {
                int j = (int) ((bits() >>> 32) * (i + 1) >>> 32);
                int kept = order[i];
                order[i] = order[j];
                order[j] = kept;
            }
            return order;
        }
    }
}
