// SPDX-License-Identifier: Apache-2.0

package digits;

import java.util.ArrayList;
import java.util.List;
import org.libdist.DType;
import org.libdist.Tensor;

/**
 * A multilayer perceptron with layers of features, 256, 320 and classes units and ReLU between them. Each
 * replica has its own network for its rows. The parameters are read from the variables.
 */
final class Network {
    static final int LAYERS = 3;

    private final int[] sizes;
    private final float[][] parameters; // of the current step: weights [in, out] and biases [out], layer by layer
    private final float[][] outputs = new float[LAYERS][];
    private final float[][] deltas = new float[LAYERS][];
    private final float[][] gradients;

    /** @param maxRows maximum number of rows in a batch */
    Network(int[] sizes, int maxRows) {
        this.sizes = sizes;
        parameters = new float[2 * LAYERS][];
        gradients = new float[2 * LAYERS][];
        for (int l = 0; l < LAYERS; l++) {
            outputs[l] = new float[maxRows * sizes[l + 1]];
            deltas[l] = new float[maxRows * sizes[l + 1]];
            for (float[][] each : new float[][][] {parameters, gradients}) {
                each[2 * l] = new float[sizes[l] * sizes[l + 1]];
                each[2 * l + 1] = new float[sizes[l + 1]];
            }
        }
    }

    /** Allocates gradients in memory that libdist can reduce without copying. */
    List<Tensor> newGradients() {
        List<Tensor> tensors = new ArrayList<>();
        for (int t = 0; t < 2 * LAYERS; t++) {
            tensors.add(t % 2 == 0 ? Tensor.zeros(DType.F32, sizes[t / 2], sizes[t / 2 + 1])
                                   : Tensor.zeros(DType.F32, sizes[t / 2 + 1]));
        }
        return tensors;
    }

    /** Reads this replica's copies of the variables. */
    void read(List<Tensor> copies) {
        for (int t = 0; t < parameters.length; t++) {
            copies.get(t).floats().get(parameters[t]);
        }
    }

    /** Rows with their labels. The arrays may be longer. */
    record Batch(int rows, float[] features, int[] labels) {}

    void forward(Batch batch) {
        float[] input = batch.features();
        for (int l = 0; l < LAYERS; l++) {
            int in = sizes[l];
            int out = sizes[l + 1];
            Matrix.multiply(batch.rows(), in, out, input, in, 1, parameters[2 * l], parameters[2 * l + 1],
                    outputs[l]);
            for (int i = 0; l + 1 < LAYERS && i < batch.rows() * out; i++) {
                outputs[l][i] = outputs[l][i] > 0 ? outputs[l][i] : 0f;
            }
            input = outputs[l];
        }
        for (int i = 0; i < batch.rows(); i++) {
            softmax(i * classes());
        }
    }

    private int classes() {
        return sizes[LAYERS];
    }

    private void softmax(int row) {
        float[] x = outputs[LAYERS - 1];
        float largest = x[row];
        for (int j = 1; j < classes(); j++) {
            largest = x[row + j] > largest ? x[row + j] : largest;
        }
        float sum = 0;
        for (int j = 0; j < classes(); j++) {
            x[row + j] = Matrix.exp(x[row + j] - largest);
            sum += x[row + j];
        }
        for (int j = 0; j < classes(); j++) {
            x[row + j] /= sum;
        }
    }

    /** Returns the number of rows whose most probable class is their label. */
    int correct(Batch batch) {
        int correct = 0;
        for (int i = 0; i < batch.rows(); i++) {
            int best = 0;
            for (int j = 1; j < classes(); j++) {
                best = probability(i, j) > probability(i, best) ? j : best;
            }
            correct += best == batch.labels()[i] ? 1 : 0;
        }
        return correct;
    }

    private float probability(int row, int j) {
        return outputs[LAYERS - 1][row * classes() + j];
    }

    /** Returns the cross-entropy over the rows, which is only displayed. */
    double loss(Batch batch) {
        double loss = 0;
        for (int i = 0; i < batch.rows(); i++) {
            loss -= Math.log(Math.max(probability(i, batch.labels()[i]), 1e-37));
        }
        return loss;
    }

    /** Computes the gradients of (sum of the rows' losses) * scale. Call forward() first. */
    void backward(Batch batch, float scale, List<Tensor> out) {
        for (int i = 0; i < batch.rows(); i++) {
            for (int j = 0; j < classes(); j++) {
                float target = j == batch.labels()[i] ? 1f : 0f;
                deltas[LAYERS - 1][i * classes() + j] = (probability(i, j) - target) * scale;
            }
        }
        for (int l = LAYERS - 1; l >= 0; l--) {
            float[] input = l > 0 ? outputs[l - 1] : batch.features();
            Matrix.multiply(sizes[l], batch.rows(), sizes[l + 1], input, 1, sizes[l], deltas[l], null,
                    gradients[2 * l]);
            Matrix.sumRows(batch.rows(), sizes[l + 1], deltas[l], gradients[2 * l + 1]);
            if (l > 0) {
                previousDelta(batch.rows(), l);
            }
        }
        for (int t = 0; t < gradients.length; t++) {
            out.get(t).floats().put(gradients[t]);
        }
    }

    /** Propagates layer l's delta to the previous layer: through the weights, then through the ReLU. */
    private void previousDelta(int rows, int l) {
        int in = sizes[l];
        int out = sizes[l + 1];
        float[] transposed = new float[in * out];
        Matrix.transpose(in, out, parameters[2 * l], transposed);
        Matrix.multiply(rows, out, in, deltas[l], out, 1, transposed, null, deltas[l - 1]);
        for (int i = 0; i < rows * in; i++) {
            deltas[l - 1][i] = outputs[l - 1][i] > 0 ? deltas[l - 1][i] : 0f;
        }
    }
}
