// SPDX-License-Identifier: Apache-2.0

import java.nio.DoubleBuffer;
import java.util.Locale;
import org.libdist.CollectiveOptions;
import org.libdist.DirectBuffers;
import org.libdist.ReduceOp;
import org.libdist.Replica;
import org.libdist.Strategy;
import org.libdist.StrategyKind;
import org.libdist.StrategyOptions;

/**
 * One worker process of a job that TF_CONFIG describes. The replicas of all workers sum their numbers. The
 * other workers may be written in any language. With the argument "reform", the workers that are still
 * running re-form without the others and sum again.
 *
 * <pre>dist-launch -n 2 --replicas 2 -- java -cp ... Worker</pre>
 */
public final class Worker {
    public static void main(String[] args) {
        StrategyOptions options = StrategyOptions.DEFAULT.kind(StrategyKind.MULTI_WORKER_MIRRORED);
        try (Strategy strategy = Strategy.create(options)) {
            strategy.run(Worker::addUp);
            if (args.length > 0 && args[0].equals("reform")) {
                strategy.reform();
                strategy.run(Worker::addUp);
            }
        }
    }

    private static void addUp(Replica replica) {
        DoubleBuffer number = DirectBuffers.of((double) (replica.id() + 1));
        replica.allReduce(ReduceOp.SUM, number, CollectiveOptions.DEFAULT.tag("numbers"));
        System.out.printf(Locale.ROOT, "replica %d of %d: %.0f%n", replica.id(), replica.numReplicas(), number.get(0));
    }
}
