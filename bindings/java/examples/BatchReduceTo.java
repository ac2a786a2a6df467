// SPDX-License-Identifier: Apache-2.0

import java.util.List;
import org.libdist.Aggregation;
import org.libdist.CollectiveOptions;
import org.libdist.Destination;
import org.libdist.ReduceOp;
import org.libdist.Strategy;
import org.libdist.Tensors;
import org.libdist.Value;
import org.libdist.Variable;
import org.libdist.VariableOptions;

/**
 * The example of batch_reduce_to() from the tf.distribute documentation, in Java. Each replica contributes 1.
 * A merge function, which runs once for all replicas, sums the values and assigns the sum to the variable.
 * Run it as `BatchReduceTo [REPLICAS]` (default 2); it prints every copy of the variable.
 */
public final class BatchReduceTo {
    public static void main(String[] args) {
        try (Strategy strategy = Strategy.create(args.length > 0 ? Integer.parseInt(args[0]) : 2)) {
            Variable v = Variable.create(strategy, Tensors.scalar(0f),
                    VariableOptions.DEFAULT.name("v").aggregation(Aggregation.SUM));
            strategy.run(replica -> {
                Value one = Value.createTensor(strategy, Tensors.scalar(1f));
                replica.mergeCall((outer, merged, named) -> {
                    List<Value> sums = outer.batchReduceTo(
                            ReduceOp.SUM, List.of(merged.item(0)), List.of(Destination.of(v)));
                    return v.update(outer, (place, values, none) -> {
                        place.copy().floats().put(0, values.item(0).tensor().floats().get(0));
                        return null;
                    }, Value.createTuple(outer, sums.get(0)));
                }, Value.createTuple(strategy, one), null, CollectiveOptions.DEFAULT);
            });
            for (int copy = 0; copy < v.numCopies(); copy++) {
                System.out.println(v.copyName(copy) + " " + v.component(copy).item());
            }
        }
    }
}
