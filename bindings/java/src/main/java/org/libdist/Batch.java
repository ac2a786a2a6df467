// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.DistModule;

/**
 * One step of a {@link Batcher}, with the items 0 to size() - 1. It is valid only while the step function
 * runs, and on its thread.
 *
 * @param <Q> the type of submitted requests
 * @param <R> the type of partial results
 */
public final class Batch<Q, R> {
    private final long handle;
    private boolean over;

    Batch(long handle) {
        this.handle = handle;
    }

    void end() {
        over = true;
    }

    @SuppressWarnings("unchecked")
    Item.ItemCall<Q, R> item(int i) {
        if (over) {
            throw new DistException(Status.FAILED_PRECONDITION, "the step is over");
        }
        if (i < 0 || i >= size()) {
            throw new IndexOutOfBoundsException("item " + i + " of " + size());
        }
        return (Item.ItemCall<Q, R>) Upcalls.target(DistModule.dist_batch_user_data(handle, i));
    }

    /** Returns the number of items in the step, or 0 after the step function has returned. */
    public int size() {
        return over ? 0 : (int) DistModule.dist_batch_size(handle);
    }

    /** Returns the bucket of the items: no item has a greater length. Returns 0 if there are no buckets. */
    public long bucket() {
        return over ? 0 : DistModule.dist_batch_bucket(handle);
    }

    /** Returns the object that was passed to {@link Batcher#submit} for item {@code i}. */
    public Q input(int i) {
        return item(i).input();
    }

    /** Returns the state that a step has set for item {@code i}, or null if none has been set. */
    public Object state(int i) {
        item(i);
        return Item.Held.of(DistModule.dist_batch_state(handle, i));
    }

    /**
     * Same as {@link #state(int)}, cast to a class.
     *
     * @throws ClassCastException the state is of another class
     */
    public <S> S state(int i, Class<S> type) {
        return Objects.requireNonNull(type, "type").cast(state(i));
    }

    /** Stores a state with item {@code i} until the item completes. */
    public void setState(int i, Object state) {
        item(i);
        long token = Upcalls.register(new Item.Held(Objects.requireNonNull(state, "state")));
        Upcalls.unregister(DistModule.dist_batch_state(handle, i));
        DistModule.dist_batch_set_state(handle, i, token);
    }

    /** Throws if item {@code i} is no longer wanted: CANCELLED or DEADLINE_EXCEEDED. */
    public void check(int i) {
        item(i);
        DistModule.dist_batch_check(handle, i);
    }

    /**
     * Emits a partial result of item {@code i}, which {@link Item#take} returns.
     *
     * @throws DistException RESOURCE_EXHAUSTED {@link BatcherOptions#maxResults} results of the item have not
     *         been taken; this cannot happen in a step that emits at most one result per item
     */
    public void emit(int i, R result) {
        item(i);
        long token = Upcalls.register(new Item.Held(Objects.requireNonNull(result, "result")));
        try {
            DistModule.dist_batch_emit(handle, i, token);
        } catch (DistException e) {
            Upcalls.unregister(token);
            throw e;
        }
    }

    /** Completes item {@code i} successfully after this step. */
    public void end(int i) {
        item(i).ends(null);
        DistModule.dist_batch_end(handle, i, Status.OK.code());
    }

    /** Completes item {@code i} after this step. Its future completes exceptionally with {@code failure}. */
    public void end(int i, Throwable failure) {
        item(i).ends(Objects.requireNonNull(failure, "failure"));
        DistModule.dist_batch_end(handle, i, Target.tell(failure));
    }
}
