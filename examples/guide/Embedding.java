// SPDX-License-Identifier: Apache-2.0

import java.nio.DoubleBuffer;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.libdist.DirectBuffers;
import org.libdist.ReduceOp;
import org.libdist.Replica;
import org.libdist.ReplicaThreads;
import org.libdist.Strategy;
import org.libdist.StrategyOptions;

/** embedding.c in Java: two threads of the program are the replicas. */
public final class Embedding {
    private static void step(Replica replica) {
        DoubleBuffer number = DirectBuffers.of(replica.id() + 1.0);
        replica.allReduce(ReduceOp.SUM, number);
        System.out.printf("replica %d: the sum is %.0f%n", replica.id(), number.get(0));
    }

    public static void main(String[] args) throws Exception {
        StrategyOptions options = StrategyOptions.DEFAULT.numReplicas(2).threads(ReplicaThreads.HOST);
        ExecutorService pool = Executors.newSingleThreadExecutor();
        try (Strategy strategy = Strategy.create(options)) {
            Future<?> other = pool.submit(() -> strategy.enter(1, Embedding::step)); // leaves with the run
            strategy.enter(0, Embedding::step);
            other.get(); // throws if the run has failed
        } finally {
            pool.shutdown();
        }
    }
}
