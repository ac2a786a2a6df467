// SPDX-License-Identifier: Apache-2.0

import java.nio.FloatBuffer;
import org.libdist.ReduceOp;
import org.libdist.Replica;
import org.libdist.Strategy;

/** Times operations of one strategy, in microseconds per operation, with one sample per batch. */
final class Measurement {
    private final Strategy strategy;
    private Tensors tensors; // of the last request; the sides in C keep theirs, too

    Measurement(Strategy strategy) {
        this.strategy = strategy;
    }

    /** Times the caller. */
    double[] emptyRuns(Plan plan) {
        double[] samples = new double[plan.batches()];
        for (int batch = -1; batch < plan.batches(); batch++) {
            long begin = System.nanoTime();
            for (int i = 0; i < plan.iterations(); i++) {
                strategy.run(replica -> {});
            }
            if (batch >= 0) {
                samples[batch] = micros(System.nanoTime() - begin) / plan.iterations();
            }
        }
        return samples;
    }

    /** Times the calls inside one run. */
    double[] allReduces(Plan plan, int elements) throws Tensors.WrongResult {
        int replicas = strategy.numReplicas();
        if (tensors == null || tensors.elements() != elements) {
            tensors = new Tensors(replicas, elements);
        }
        tensors.expect(plan.iterations());
        Interval[][] watch = new Interval[replicas][plan.batches() + 1];
        strategy.run(replica -> reduce(replica, plan.iterations(), watch[replica.id()]));
        tensors.requireRight();
        return collect(watch, plan.iterations());
    }

    /** Times the calls inside one run. */
    double[] barriers(Plan plan) {
        Interval[][] watch = new Interval[strategy.numReplicas()][plan.batches() + 1];
        strategy.run(replica -> meet(replica, plan.iterations(), watch[replica.id()]));
        return collect(watch, plan.iterations());
    }

    /** One replica's part, as in C: meet, time the operations, meet. */
    private static void meet(Replica replica, int iterations, Interval[] watch) {
        for (int batch = 0; batch < watch.length; batch++) {
            replica.barrier();
            long begin = System.nanoTime();
            for (int i = 0; i < iterations; i++) {
                replica.barrier();
            }
            watch[batch] = new Interval(begin, System.nanoTime());
            replica.barrier();
        }
    }

    /** One replica's part, as in C: restore the data, meet, time the operations, compare, meet. */
    private void reduce(Replica replica, int iterations, Interval[] watch) {
        FloatBuffer data = tensors.data(replica.id());
        for (int batch = 0; batch < watch.length; batch++) {
            tensors.reset(replica.id());
            replica.barrier();
            long begin = System.nanoTime();
            for (int i = 0; i < iterations; i++) {
                replica.allReduce(ReduceOp.SUM, data);
            }
            watch[batch] = new Interval(begin, System.nanoTime());
            tensors.check(replica.id());
            replica.barrier();
        }
    }

    private record Interval(long begin, long end) {}

    /**
     * Returns the time from the last replica's beginning to the last one's end, because the time before is spent waiting
     * for a thread that has not arrived.
     */
    private static double[] collect(Interval[][] watch, int iterations) {
        double[] samples = new double[watch[0].length - 1];
        for (int batch = 0; batch < samples.length; batch++) {
            Interval first = watch[0][batch + 1];
            long begin = first.begin();
            long end = first.end();
            for (Interval[] of : watch) { // by differences, because nanoTime() may wrap
                begin += Math.max(0, of[batch + 1].begin() - begin);
                end += Math.max(0, of[batch + 1].end() - end);
            }
            samples[batch] = micros(end - begin) / iterations;
        }
        return samples;
    }

    private static double micros(long nanos) {
        return nanos / 1e3;
    }
}
