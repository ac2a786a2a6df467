// SPDX-License-Identifier: Apache-2.0

import java.util.Arrays;
import java.util.List;
import org.libdist.CollectiveOptions;
import org.libdist.Numerics;
import org.libdist.ReduceOp;
import org.libdist.Strategy;
import org.libdist.Tensor;
import org.libdist.Tensors;

/** sums.c in Java: adds up four numbers with each order of additions. */
public final class Sums {
    /** Each replica contributes the same number of terms, in order. */
    private static double add(int replicas, Numerics numerics, double... terms) {
        Tensor sum = Tensors.scalar(0.0);
        int n = terms.length / replicas;
        CollectiveOptions options = CollectiveOptions.DEFAULT.contributions(n).numerics(numerics);
        try (Strategy strategy = Strategy.create(replicas)) {
            strategy.run(replica -> {
                double[] own = Arrays.copyOfRange(terms, replica.id() * n, (replica.id() + 1) * n);
                List<Tensor> in = Arrays.stream(own).mapToObj(Tensors::scalar).toList();
                Tensor out = replica.id() == 0 ? sum : Tensors.scalar(0.0);
                replica.allReduce(ReduceOp.SUM, in, List.of(out), options);
            });
        }
        return sum.doubles().get(0);
    }

    public static void main(String[] args) {
        for (Numerics numerics : List.of(Numerics.ORDERED, Numerics.TREE, Numerics.REPRODUCIBLE)) {
            double four = add(4, numerics, 1, 1e16, -1e16, 1);
            double two = add(2, numerics, 1, 1e16, -1e16, 1);
            double moved = add(4, numerics, 1e16, -1e16, 1, 1);
            System.out.printf("%s: %.0f, %.0f, %.0f%n", numerics, four, two, moved);
        }
    }
}
