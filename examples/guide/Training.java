// SPDX-License-Identifier: Apache-2.0

import java.nio.DoubleBuffer;
import java.util.List;
import java.util.Locale;
import org.libdist.Assign;
import org.libdist.Dataset;
import org.libdist.DatasetOptions;
import org.libdist.DirectBuffers;
import org.libdist.Metric;
import org.libdist.MetricKind;
import org.libdist.ReduceOp;
import org.libdist.Replica;
import org.libdist.Strategy;
import org.libdist.Tensors;
import org.libdist.Value;
import org.libdist.Variable;

/** training.c in Java: two replicas learn w in y = w * x. */
public final class Training {
    private record Model(Variable w, Metric loss) {
        /** Runs on each replica with its rows of the batch: args is the list (x, y). */
        Value trainStep(Replica replica, Value args, Value kwargs) {
            DoubleBuffer x = args.item(0).tensor().doubles();
            DoubleBuffer y = args.item(1).tensor().doubles();
            double weight = w.component(replica.id()).doubles().get(0); // this replica's copy

            double[] losses = new double[x.remaining()]; // can be empty
            double gradient = 0;
            for (int i = 0; i < losses.length; i++) {
                double error = weight * x.get(i) - y.get(i);
                losses[i] = error * error;
                gradient += 2 * error * x.get(i);
            }

            // Add up the gradients and the numbers of rows of all replicas, in one call.
            DoubleBuffer sums = DirectBuffers.of(gradient, losses.length);
            replica.allReduce(ReduceOp.SUM, sums);

            // Every replica has the same sums, so each changes its own copy, and the copies stay equal.
            w.assign(replica, Assign.SUB, Tensors.scalar(0.2 * sums.get(0) / sums.get(1)));
            loss.update(replica, Tensors.copyOf(losses));
            return null;
        }
    }

    public static void main(String[] args) {
        double[] x = new double[9];
        double[] y = new double[9];
        for (int i = 0; i < x.length; i++) {
            x[i] = (i + 1) / 8.0;
            y[i] = 3 * x[i];
        }
        try (Strategy strategy = Strategy.create(2);
                Dataset dataset = Dataset.fromTensors(strategy, List.of(Tensors.copyOf(x), Tensors.copyOf(y)),
                        DatasetOptions.DEFAULT.globalBatchSize(4));
                Variable w = Variable.create(strategy, "w", Tensors.scalar(0.0));
                Metric loss = Metric.create(strategy, MetricKind.MEAN, "loss")) {
            Model model = new Model(w, loss);
            for (int epoch = 1; epoch <= 5; epoch++) {
                for (Value batch : dataset) {
                    try (batch) {
                        strategy.run(model::trainStep, batch);
                    }
                }
                System.out.printf(Locale.ROOT, "epoch %d: loss %.4f%n", epoch, loss.result(strategy)); // all rows
                loss.reset(strategy);
            }
            try (Value value = w.read(strategy)) {
                System.out.printf(Locale.ROOT, "w = %.3f%n", value.tensor().doubles().get(0));
            }
        }
    }
}
