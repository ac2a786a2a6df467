// SPDX-License-Identifier: Apache-2.0

import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.util.List;
import org.libdist.Aggregation;
import org.libdist.Assign;
import org.libdist.DType;
import org.libdist.Dataset;
import org.libdist.DatasetOptions;
import org.libdist.Losses;
import org.libdist.Metric;
import org.libdist.MetricKind;
import org.libdist.ReduceOp;
import org.libdist.Replica;
import org.libdist.Scope;
import org.libdist.Strategy;
import org.libdist.Tensor;
import org.libdist.Tensors;
import org.libdist.Value;
import org.libdist.Variable;
import org.libdist.VariableOptions;

/**
 * The custom training loop from the tf.distribute documentation, in Java. Run it as `TrainingLoop [REPLICAS]`
 * (default 2). It learns on which side of a line a point lies (squared hinge loss). It prints the loss and
 * accuracy of each epoch and finally the bits of the weights, which equal those of examples/training_loop.c.
 * That file also shows the corresponding TensorFlow code.
 */
public final class TrainingLoop {
    private static final int EXAMPLES = 1000;
    private static final int GLOBAL_BATCH = 64;
    private static final int EPOCHS = 8;
    private static final float LEARNING_RATE = 2f;

    private final Strategy strategy;
    private final Variable weights; // for x, y and the bias
    private final Metric accuracy;

    @SuppressWarnings("try") // the scope is closed but not used
    private TrainingLoop(Strategy strategy) {
        this.strategy = strategy;
        try (Scope scope = strategy.scope()) {
            weights = Variable.create(strategy, Tensor.zeros(DType.F32, 3),
                    VariableOptions.DEFAULT.name("weights").aggregation(Aggregation.SUM));
            accuracy = Metric.create(strategy, MetricKind.ACCURACY, "accuracy");
        }
    }

    public static void main(String[] args) {
        int replicas = args.length > 0 ? Integer.parseInt(args[0]) : 2;
        try (Strategy strategy = Strategy.create(replicas); Dataset dataset = makeDataset(strategy)) {
            TrainingLoop loop = new TrainingLoop(strategy);
            for (int epoch = 1; epoch <= EPOCHS; epoch++) {
                loop.trainEpoch(dataset, epoch);
            }
            loop.printWeights();
        }
    }

    private void trainEpoch(Dataset dataset, int epoch) {
        double totalLoss = 0;
        int steps = 0;
        for (Value batch : dataset) {
            try (batch; Value losses = strategy.run(this::trainStep, batch);
                    Value sum = strategy.reduce(ReduceOp.SUM, losses)) {
                totalLoss += sum.tensor().floats().get(0);
                steps++;
            }
        }
        System.out.printf("epoch %d: loss %.4f, accuracy %.1f%%%n", epoch, totalLoss / steps,
                100 * accuracy.result(strategy));
        accuracy.reset(strategy);
    }

    /** Runs on every replica with its part of the batch. args is the list (points [n, 2], labels [n]). */
    private Value trainStep(Replica replica, Value args, Value kwargs) {
        FloatBuffer points = args.item(0).tensor().floats();
        Tensor labelTensor = args.item(1).tensor();
        IntBuffer labels = labelTensor.ints();
        FloatBuffer w = weights.component(replica.id()).floats();

        // Forward and backward pass: the loss of each example, and the gradient of the mean loss over the
        // global batch.
        int n = labels.remaining();
        float[] losses = new float[n];
        int[] predictions = new int[n];
        float[] step = new float[3];
        for (int i = 0; i < n; i++) {
            float x = points.get(2 * i);
            float y = points.get(2 * i + 1);
            float z = w.get(0) * x + w.get(1) * y + w.get(2);
            float side = labels.get(i) != 0 ? 1f : -1f;
            float missing = side * z < 1f ? 1f - side * z : 0f; // squared hinge loss
            losses[i] = missing * missing;
            predictions[i] = z > 0 ? 1 : 0;
            float slope = LEARNING_RATE / GLOBAL_BATCH * (-side * missing);
            step[0] += slope * x;
            step[1] += slope * y;
            step[2] += slope;
        }

        // The variable's aggregation is SUM: libdist adds the changes of all replicas and applies the sum to
        // every copy.
        weights.assign(replica, Assign.SUB, Tensors.copyOf(step));
        accuracy.update(replica, Tensors.copyOf(predictions), labelTensor, null);
        Tensor average = Tensors.scalar(0f);
        Losses.averageLoss(replica, Tensors.copyOf(losses), null, GLOBAL_BATCH, average);
        return Value.createTensor(replica.strategy(), average);
    }

    /** Points in the square [-1, 1) x [-1, 1). The label tells which side of the line a point is on. */
    private static Dataset makeDataset(Strategy strategy) {
        float[] points = new float[2 * EXAMPLES];
        int[] labels = new int[EXAMPLES];
        int random = 1;
        for (int i = 0; i < EXAMPLES; i++) {
            for (int k = 0; k < 2; k++) {
                random = random * 1664525 + 1013904223;
                points[2 * i + k] = (float) (random >>> 8) / (1 << 23) - 1;
            }
            labels[i] = points[2 * i] + 2 * points[2 * i + 1] > 0.25f ? 1 : 0;
        }
        return Dataset.fromTensors(strategy,
                List.of(Tensors.copyOf(points, EXAMPLES, 2), Tensors.copyOf(labels)),
                DatasetOptions.DEFAULT.globalBatchSize(GLOBAL_BATCH).shuffle(0));
    }

    /** Prints the bits of replica 0's copy. All copies are equal. */
    private void printWeights() {
        weights.checkDrift(strategy);
        FloatBuffer w = weights.component(0).floats();
        System.out.printf("weights %08x %08x %08x%n", Float.floatToRawIntBits(w.get(0)),
                Float.floatToRawIntBits(w.get(1)), Float.floatToRawIntBits(w.get(2)));
    }
}
