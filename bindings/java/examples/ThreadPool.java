// SPDX-License-Identifier: Apache-2.0

import java.nio.DoubleBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.libdist.DirectBuffers;
import org.libdist.ReduceOp;
import org.libdist.ReplicaThreads;
import org.libdist.Strategy;
import org.libdist.StrategyOptions;

/** Replicas on the program's own threads: those of an executor, which libdist starts none beside. */
public final class ThreadPool {
    public static void main(String[] args) throws Exception {
        int replicas = 3;
        ExecutorService pool =
                Executors.newFixedThreadPool(replicas); // as many threads: replicas wait for each other
        StrategyOptions options = StrategyOptions.DEFAULT.replicas(replicas).threads(ReplicaThreads.HOST);
        try (Strategy strategy = new Strategy(options)) {
            List<Future<Double>> sums = new ArrayList<>();
            for (int r = 0; r < replicas; r++) {
                int id = r;
                sums.add(pool.submit(() -> {
                    DoubleBuffer data = DirectBuffers.of((double) id);
                    strategy.enter(id, replica -> replica.allReduce(ReduceOp.SUM, data));
                    return data.get(0);
                }));
            }
            for (Future<Double> sum : sums) {
                System.out.println("sum " + sum.get());
            }
        } finally {
            pool.shutdown();
        }
    }
}
