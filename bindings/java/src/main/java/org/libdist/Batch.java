// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.DistModule;

/**
 * A step, for the time of its function and on its thread: items 0 to size() - 1.
 *
 * @param <Q> what is submitted
 * @param <R> the partial results
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

    /** How many items the step has; 0 when its function is over. */
    public int size() {
        return over ? 0 : (int) DistModule.dist_batch_size(handle);
    }

    /** The items' bucket: none of them has a greater length. 0: there are no buckets. */
    public long bucket() {
        return over ? 0 : DistModule.dist_batch_bucket(handle);
    }

    /** What {@link Batcher#submit} got for item {@code i}. */
    public Q userData(int i) {
        return item(i).userData();
    }

    /** What a step has set for item {@code i}; null: nothing yet. */
    public Object state(int i) {
        item(i);
        return Item.Held.of(DistModule.dist_batch_state(handle, i));
    }

    /**
     * As {@link #state(int)}.
     *
     * @throws ClassCastException it is of another class
     */
    public <S> S state(int i, Class<S> type) {
        return Objects.requireNonNull(type, "type").cast(state(i));
    }

    /** Keeps a state with item {@code i}, until it ends. */
    public void setState(int i, Object state) {
        item(i);
        long token = Upcalls.register(new Item.Held(Objects.requireNonNull(state, "state")));
        Upcalls.unregister(DistModule.dist_batch_state(handle, i));
        DistModule.dist_batch_set_state(handle, i, token);
    }

    /** Throws where nobody waits for item {@code i} any more: CANCELLED, DEADLINE_EXCEEDED. */
    public void check(int i) {
        item(i);
        DistModule.dist_batch_check(handle, i);
    }

    /**
     * Gives a partial result of item {@code i}: {@link Item#take}.
     *
     * @throws DistException RESOURCE_EXHAUSTED {@link BatcherOptions#maxResults} have not been taken; a step that emits
     *         one for each item never sees that
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

    /** Item {@code i} ends after this step, well. */
    public void end(int i) {
        item(i).ends(null);
        DistModule.dist_batch_end(handle, i, Status.OK.code());
    }

    /** Item {@code i} ends after this step; its future is completed with {@code failure}. */
    public void end(int i, Throwable failure) {
        item(i).ends(Objects.requireNonNull(failure, "failure"));
        DistModule.dist_batch_end(handle, i, Target.tell(failure));
    }
}
