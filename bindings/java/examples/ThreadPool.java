// SPDX-License-Identifier: Apache-2.0

import java.nio.DoubleBuffer;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.libdist.DirectBuffers;
import org.libdist.ReduceOp;
import org.libdist.Strategy;
import org.libdist.StrategyOptions;

/** Runs replicas on the threads of an executor. libdist starts no threads of its own. */
public final class ThreadPool {
    public static void main(String[] args) {
        int replicas = 3;
        ExecutorService pool =
                Executors.newFixedThreadPool(replicas); // one thread per replica, because replicas wait for each other
        StrategyOptions options = StrategyOptions.DEFAULT.numReplicas(replicas).executor(pool);
        try (Strategy strategy = Strategy.create(options)) {
            double[] sums = new double[replicas];
            strategy.run(replica -> {
                DoubleBuffer data = DirectBuffers.of((double) replica.id());
                replica.allReduce(ReduceOp.SUM, data);
                sums[replica.id()] = data.get(0);
            });
            for (double sum : sums) {
                System.out.println("sum " + sum);
            }
        } finally {
            pool.shutdown();
        }
    }
}
