// SPDX-License-Identifier: Apache-2.0

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.libdist.CollectiveOptions;
import org.libdist.DType;
import org.libdist.DistException;
import org.libdist.LogFunction;
import org.libdist.ReduceOp;
import org.libdist.Replica;
import org.libdist.Status;
import org.libdist.Straggler;
import org.libdist.Strategy;
import org.libdist.StrategyOptions;
import org.libdist.Tensor;
import org.libdist.Tensors;
import org.libdist.Variable;
import org.libdist.Work;

/**
 * observing.c in Java: the late replica, metrics, a trace, and copies of a variable that differ. Run it as `Observing
 * TRACE.json`.
 */
public final class Observing {
    private static final CollectiveOptions TAG = CollectiveOptions.DEFAULT.tag("gradients");

    /** Replica 0 begins the all-reduce before the barrier, replica 1 after it: so replica 1 is late. */
    private static void step(Replica replica) {
        List<Tensor> gradient = List.of(Tensors.scalar(1f));
        Work work = null;
        if (replica.id() == 0) {
            work = replica.async().allReduce(ReduceOp.SUM, gradient, TAG);
        }
        replica.barrier();
        if (replica.id() == 1) {
            work = replica.async().allReduce(ReduceOp.SUM, gradient, TAG);
        }
        work.join();
    }

    private static void printStragglers(Strategy strategy) {
        for (Straggler row : strategy.stragglers()) {
            if (row.tag().equals("gradients")) { // only this one is the same in every run
                System.out.printf("replica %d was last in %d of %d rounds of \"%s\"%n", row.replica(), row.timesLast(),
                        row.rounds(), row.tag());
            }
        }
    }

    private static void findDrift(Strategy strategy) {
        try (Variable w = Variable.create(strategy, "w", Tensor.zeros(DType.F64, 3))) {
            w.component(1).doubles().put(2, 5); // a mistake: only one copy changes
            w.checkDrift(strategy);
        } catch (DistException e) {
            if (e.status() != Status.DATA_LOSS) {
                throw e;
            }
            System.out.printf("replica %d has %s instead of %s%n", e.replica(), e.received(), e.expected());
        }
    }

    public static void main(String[] args) throws IOException {
        // With SLF4J: LogFunction.of(logger::error, logger::warn, logger::info)
        LogFunction log = LogFunction.of(System.err::println, System.err::println, System.err::println);
        try (Strategy strategy = Strategy.create(StrategyOptions.DEFAULT.numReplicas(2).log(log))) {
            for (int i = 0; i < 3; i++) {
                strategy.run(Observing::step);
            }
            printStragglers(strategy);
            findDrift(strategy);
            System.err.print(strategy.explain() + strategy.metricsText("train"));
            if (args.length > 0) {
                Files.writeString(Path.of(args[0]), strategy.traceJson());
            }
        }
    }
}
