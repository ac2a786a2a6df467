// SPDX-License-Identifier: Apache-2.0

import org.libdist.Aggregation;
import org.libdist.Assign;
import org.libdist.Strategy;
import org.libdist.Synchronization;
import org.libdist.Tensors;
import org.libdist.Value;
import org.libdist.Variable;
import org.libdist.VariableOptions;

/**
 * variables.c in Java: a mirrored variable, whose copies are equal, and a counter, of which each replica changes its
 * own copy.
 */
public final class Variables {
    public static void main(String[] args) {
        VariableOptions mirrored = VariableOptions.DEFAULT.name("w").aggregation(Aggregation.SUM);
        VariableOptions counter = VariableOptions.DEFAULT.name("seen")
                                          .aggregation(Aggregation.SUM)
                                          .synchronization(Synchronization.ON_READ);
        try (Strategy strategy = Strategy.create(2);
                Variable w = Variable.create(strategy, Tensors.scalar(0.0), mirrored);
                Variable seen = Variable.create(strategy, Tensors.scalar(0.0), counter)) {
            strategy.run(replica -> {
                // A collective: all copies change by the sum of the replicas' changes, 1 + 2.
                w.assign(replica, Assign.ADD, Tensors.scalar(replica.id() + 1.0));
                // Not a collective: this replica's copy changes by its rows, 4 or 3.
                seen.assign(replica, Assign.ADD, Tensors.scalar(4.0 - replica.id()));
            });
            System.out.println(w.describe());
            System.out.println(seen.describe());
            try (Value sum = seen.read(strategy)) { // the sum of the copies
                System.out.printf("seen: %.0f%n", sum.tensor().doubles().get(0));
            }
        }
    }
}
