// SPDX-License-Identifier: Apache-2.0

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.libdist.CollectiveOptions;
import org.libdist.DType;
import org.libdist.Plan;
import org.libdist.ReduceOp;
import org.libdist.Strategy;
import org.libdist.Tensor;
import org.libdist.Tensors;
import org.libdist.Work;

/**
 * Overlaps computation with all-reduces: with futures, and with a plan that is created once and used in every
 * step.
 */
public final class Overlap {
    private static final int STEPS = 3;

    public static void main(String[] args) {
        try (Strategy strategy = Strategy.create(2)) {
            // Each collective returns a CompletableFuture, whose stages run on the replica's own thread.
            strategy.run(replica -> {
                Tensor loss = Tensors.copyOf(new float[] {replica.id() + 1});
                Tensor gradient = Tensors.copyOf(new float[] {1, 2, 3});
                Work first = replica.async().allReduce(
                        ReduceOp.MEAN, List.of(loss), CollectiveOptions.DEFAULT.tag("loss"));
                Work second = replica.async().allReduce(
                        ReduceOp.SUM, List.of(gradient), CollectiveOptions.DEFAULT.tag("sum"));
                first.thenRun(() -> {
                    if (replica.id() == 0) {
                        System.out.println("mean loss " + loss.item());
                    }
                });
                second.join();
            });

            // The plan divides a list into packs of about 4 KiB. The reduction of a pack starts as soon as
            // all replicas have provided its tensors.
            strategy.run(replica -> {
                List<Tensor> gradients = new ArrayList<>();
                IntStream.range(0, 8).forEach(i -> gradients.add(Tensor.zeros(DType.F32, 256)));
                CollectiveOptions packs = CollectiveOptions.DEFAULT.tag("gradients").bytesPerPack(4096);
                try (Plan plan = replica.planned().allReduce(ReduceOp.SUM, gradients, packs)) {
                    for (int step = 1; step <= STEPS; step++) {
                        for (int t = gradients.size() - 1; t >= 0;
                                t--) { // the last tensor first, as in backpropagation
                            gradients.get(t).floats().put(0, step * t);
                            plan.markReady(t);
                        }
                        plan.await();
                    }
                }
                if (replica.id() == 0) {
                    System.out.println("last gradient " + gradients.get(7).floats().get(0));
                }
            });
        }
    }
}
