// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import org.libdist.internal.DistModule;

/**
 * A collective that is prepared once and repeated any number of times, without further checks or allocations;
 * see {@link Replica#planned}. It belongs to the replica that created it. Later runs can use it too, unless
 * collectives of a run have failed since.
 *
 * <pre>{@code
 * Plan plan = replica.planned().allReduce(ReduceOp.SUM, gradients, options.bytesPerPack(4 << 20));
 * for (int step = 0; step < steps; step++) {
 *     for (int t = gradients.size() - 1; t >= 0; t--) {
 *         compute(t);
 *         plan.markReady(t); // its pack starts when it is ready on all replicas
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

    /** Starts a round. All tensors that are not ready yet become ready. */
    public void start() {
        replica.keep(this);
        ask(handle -> {
            DistModule.dist_work_start(handle);
            return null;
        });
    }

    /** Declares one tensor of the list ready. The first call of a round starts it. */
    public void markReady(int tensor) {
        replica.keep(this);
        ask(handle -> {
            DistModule.dist_work_ready(handle, tensor);
            return null;
        });
    }

    /** Returns whether the round has completed. If there is a part of the work to do, this method does it. */
    public boolean isDone() {
        return askInt(handle -> {
            int[] done = new int[1];
            DistModule.dist_work_test(handle, done);
            return done[0];
        }) != 0;
    }

    /** Waits until the round has completed, up to the timeout in the collective's options. */
    public void await() {
        await(Duration.ofNanos(Durations.NO_TIMEOUT_NANOS));
    }

    /**
     * Same as {@link #await()}, with a timeout. Zero does not wait, and a negative value means no limit. If the timeout
     * expires, this call fails with DEADLINE_EXCEEDED, and the round continues.
     */
    public void await(Duration timeout) {
        ask(handle -> {
            DistModule.dist_work_wait(handle, Durations.nanos(timeout, "timeout"));
            return used;
        });
    }

    /** Cancels the round in progress, and all rounds of its group in this run, with CANCELLED. */
    public void cancel() {
        ask(handle -> {
            DistModule.dist_work_cancel(handle);
            return null;
        });
    }

    /** Closes the plan. If a round is in progress, call it on the replica's thread. */
    @Override
    public void close() {
        super.close();
    }
}
