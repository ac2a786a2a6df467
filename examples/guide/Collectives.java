// SPDX-License-Identifier: Apache-2.0

import java.nio.DoubleBuffer;
import java.util.List;
import org.libdist.CollectiveOptions;
import org.libdist.DirectBuffers;
import org.libdist.Group;
import org.libdist.Plan;
import org.libdist.ReduceOp;
import org.libdist.Replica;
import org.libdist.Strategy;
import org.libdist.Tensor;
import org.libdist.Tensors;
import org.libdist.Work;

/** collectives.c in Java: a group, an asynchronous collective, and a plan. */
public final class Collectives {
    /** Only the members of the group take part. */
    private static void sumOfGroup(Replica replica, Group group) {
        if (group.rank(replica.id()) < 0) {
            return; // not a member
        }
        DoubleBuffer number = DirectBuffers.of(replica.id() + 1.0);
        replica.allReduce(ReduceOp.SUM, number, CollectiveOptions.DEFAULT.group(group));
        print(replica, "group: %.0f", number.get(0));
    }

    /** The call returns immediately. The tensor must not be touched until the work has completed. */
    private static void asynchronous(Replica replica) {
        Tensor number = Tensors.scalar(replica.id() + 1.0);
        Work work = replica.async().allReduce(ReduceOp.SUM, List.of(number), CollectiveOptions.DEFAULT);
        // ... compute something else here ...
        work.join();
        print(replica, "asynchronous: %.0f", number.doubles().get(0));
    }

    /** A tensor can be reduced as soon as all replicas have declared it ready. */
    private static void planned(Replica replica) {
        List<Tensor> numbers = List.of(Tensors.scalar(0.0), Tensors.scalar(0.0));
        // A pack for each tensor; real gradients need packs of about 4 MiB.
        CollectiveOptions packs = CollectiveOptions.DEFAULT.bytesPerPack(8);
        try (Plan plan = replica.planned().allReduce(ReduceOp.SUM, numbers, packs)) { // once for all steps
            for (int step = 1; step <= 2; step++) {
                for (int t = numbers.size() - 1; t >= 0; t--) { // the last tensor first, as in backpropagation
                    numbers.get(t).doubles().put(0, step * (t + 1) * (replica.id() + 1));
                    plan.markReady(t);
                }
                plan.await();
                print(replica, "step %d: %.0f %.0f", step, numbers.get(0).doubles().get(0),
                        numbers.get(1).doubles().get(0));
            }
        }
    }

    private static void print(Replica replica, String format, Object... arguments) {
        if (replica.id() == 0) {
            System.out.println(String.format(format, arguments));
        }
    }

    public static void main(String[] args) {
        try (Strategy strategy = Strategy.create(4); Group even = Group.create(strategy, 0, 2)) {
            strategy.run(replica -> {
                sumOfGroup(replica, even);
                asynchronous(replica);
                planned(replica);
            });
        }
    }
}
