// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import org.libdist.internal.DistModule;

/**
 * A collective that is made once and done any number of times, without any further check or allocation; see
 * {@link Replica#planned}. It is this replica's: also in later runs, unless collectives of a run have failed
 * since.
 *
 * <pre>{@code
 * Plan plan = replica.planned().allReduce(ReduceOp.SUM, gradients, options.bytesPerPack(4 << 20));
 * for (int step = 0; step < steps; step++) {
 *     for (int t = gradients.size() - 1; t >= 0; t--) {
 *         compute(t);
 *         plan.ready(t); // its pack begins when all replicas are ready
 *     }
 *     plan.await();
 * }
 * }</pre>
 */
public final class Plan extends NativeObject {
    private final Replica replica;
    private final Object used; // tensors: libdist's while a round is under way

    Plan(Native owner, Replica replica, Object used) {
        super(owner);
        this.replica = replica;
        this.used = used;
    }

    /** Begins a round: all tensors that are not ready yet are from now on. */
    public void start() {
        replica.keep(this);
        ask(handle -> {
            DistModule.dist_work_start(handle);
            return null;
        });
    }

    /** One tensor of the list is ready; the first of a round begins it. */
    public void ready(int tensor) {
        replica.keep(this);
        ask(handle -> {
            DistModule.dist_work_ready(handle, tensor);
            return null;
        });
    }

    /** Whether the round has ended. Does a part of it where there is one to do. */
    public boolean isDone() {
        return askInt(handle -> {
            int[] done = new int[1];
            DistModule.dist_work_test(handle, done);
            return done[0];
        }) != 0;
    }

    /** Waits until the round has ended, as long as the collective's options say. */
    public void await() {
        await(Duration.ZERO);
    }

    /** As {@link #await()}, with a bound; zero: that of the options, negative: no limit. */
    public void await(Duration timeout) {
        ask(handle -> {
            DistModule.dist_work_wait(handle, Durations.nanos(timeout, "timeout"));
            return used;
        });
    }

    /** Ends the round that is under way, and all rounds of its group in this run: CANCELLED. */
    public void cancel() {
        ask(handle -> {
            DistModule.dist_work_cancel(handle);
            return null;
        });
    }

    /** Gives the plan up; on the replica's thread where a round is under way. */
    @Override
    public void close() {
        super.close();
    }
}
