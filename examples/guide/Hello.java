// SPDX-License-Identifier: Apache-2.0

import java.nio.DoubleBuffer;
import org.libdist.DirectBuffers;
import org.libdist.ReduceOp;
import org.libdist.Strategy;

/** hello.c in Java: four replicas add up their numbers. */
public final class Hello {
    public static void main(String[] args) {
        try (Strategy strategy = Strategy.create(4)) {
            strategy.run(replica -> {
                DoubleBuffer number = DirectBuffers.of(replica.id() + 1.0); // 1, 2, 3 and 4
                replica.allReduce(ReduceOp.SUM, number);
                System.out.printf("replica %d: the sum is %.0f%n", replica.id(), number.get(0));
            });
        }
    }
}
