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
 * One of the processes of a job, which TF_CONFIG describes. Its replicas and those of all others, whatever language they are
 * written in, add up their numbers. With the word "reform" it does so once more, after the workers have re-formed without
 * those that have ended.
 *
 * <pre>dist-launch -n 2 --replicas 2 -- java -cp ... Worker</pre>
 */
public final class Worker {
    public static void main(String[] args) {
        StrategyOptions options = StrategyOptions.DEFAULT.kind(StrategyKind.MULTI_WORKER_MIRRORED);
        try (Strategy strategy = new Strategy(options)) {
            strategy.run(Worker::addUp);
            if (args.length > 0 && args[0].equals("reform")) {
                strategy.reform();
                strategy.run(Worker::addUp);
            }
        }
    }

    private static void addUp(Replica replica) {
        DoubleBuffer number = DirectBuffers.of((double) (replica.id() + 1));
        replica.allReduce(ReduceOp.SUM, number, CollectiveOptions.tag("numbers"));
        System.out.printf(Locale.ROOT, "replica %d of %d: %.0f%n", replica.id(), replica.numReplicas(), number.get(0));
    }
}
