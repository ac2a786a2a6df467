// SPDX-License-Identifier: Apache-2.0

import java.io.IOException;
import java.nio.FloatBuffer;
import org.libdist.CollectiveOptions;
import org.libdist.DirectBuffers;
import org.libdist.DistException;
import org.libdist.ReduceOp;
import org.libdist.Strategy;

/**
 * Sums a gradient over four replicas, and shows how a failing replica appears to its peers and to the caller.
 */
public final class AllReduce {
    public static void main(String[] args) {
        try (Strategy strategy = Strategy.create(4)) {
            CollectiveOptions gradients = CollectiveOptions.DEFAULT.tag("gradient");

            // Every replica contributes its gradient and receives the sum.
            FloatBuffer[] sums = new FloatBuffer[strategy.numReplicas()];
            strategy.run(replica -> {
                FloatBuffer gradient = DirectBuffers.of(1f, replica.id(), 0.5f);
                replica.allReduce(ReduceOp.SUM, gradient, gradients);
                sums[replica.id()] = gradient;
            });
            for (int id = 0; id < sums.length; id++) {
                FloatBuffer sum = sums[id];
                System.out.printf("replica %d: %s %s %s%n", id, sum.get(0), sum.get(1), sum.get(2));
            }

            // Replica 2 fails before the collective that the others wait in. They get an exception that names
            // it, and run() throws its original exception.
            DistException[] peers = new DistException[strategy.numReplicas()];
            try {
                strategy.run(replica -> {
                    if (replica.id() == 2) {
                        throw new IOException("row 7 of the data is broken");
                    }
                    try {
                        replica.allReduce(ReduceOp.SUM, DirectBuffers.of(1f, 2f, 3f), gradients);
                    } catch (DistException e) {
                        peers[replica.id()] = e;
                        throw e;
                    }
                });
            } catch (IOException e) {
                System.out.println("run: " + e.getMessage());
            }
            System.out.printf("replica 0: %s, replica %d failed%n", peers[0].status(), peers[0].replica());
        }
    }
}
