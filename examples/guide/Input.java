// SPDX-License-Identifier: Apache-2.0

import org.libdist.Dataset;
import org.libdist.DatasetOptions;
import org.libdist.Strategy;
import org.libdist.Tensors;
import org.libdist.Value;

/** input.c in Java: batches of a source function, and a value from a function. */
public final class Input {
    public static void main(String[] args) {
        try (Strategy strategy = Strategy.create(2);
                Dataset dataset = Dataset.fromSource(strategy,
                        index -> index == 7 ? null // the end of the pass
                                            : Value.createTensor(strategy, Tensors.scalar(index * index)),
                        DatasetOptions.DEFAULT.globalBatchSize(4))) {
            for (Value batch : dataset) {
                try (batch) {
                    System.out.println(batch.describe()); // a training loop passes the batch to run()
                }
            }
            try (Value seeds = Value.fromFunction(strategy,
                         (replica, numReplicas) -> Value.createTensor(strategy, Tensors.scalar(100L + replica)))) {
                System.out.println(seeds.describe());
            }
        }
    }
}
