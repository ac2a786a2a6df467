// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Optional;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_position;

/**
 * One pass over a dataset. The caller owns each batch and closes it. Only one thread may use an iterator at a
 * time. Exceptions that your source throws, including checked ones, are rethrown unchanged by these methods.
 */
public final class BatchIterator extends NativeObject implements Iterator<Value> {
    private final Strategy workers; // whose other workers a step waits for; null: none
    private final Target target; // the source's; null: none
    private Value ahead; // asked for by hasNext()
    private Position before; // position of the pass at that time

    BatchIterator(Strategy workers, long handle, Target target) {
        super(new Native("iterator", handle, DistModule::dist_iterator_destroy));
        this.workers = workers;
        this.target = target;
    }

    @FunctionalInterface
    private interface Next {
        void with(long handle, long[] out);
    }

    private Value call(Next next) {
        long[] out = new long[1];
        try (Uses uses = new Uses()) {
            uses.waitingForPeersOf(workers);
            next.with(uses.of(this), out);
        } catch (DistException report) {
            throw Dataset.cause(target, report);
        }
        return Value.taken(out[0]);
    }

    @Override
    public boolean hasNext() {
        if (ahead == null) {
            before = position();
            ahead = call(DistModule::dist_iterator_next_optional);
            if (ahead != null) {
                ahead.moveTo(null); // it is the iterator's until next() gives it
            }
        }
        return ahead != null;
    }

    /**
     * Returns the next batch: the structure of an element, with a per-replica value at each leaf.
     *
     * @throws NoSuchElementException the pass has ended
     */
    @Override
    public Value next() {
        if (ahead != null) {
            return taken();
        }
        Value batch = call(DistModule::dist_iterator_next);
        if (batch == null) {
            throw new NoSuchElementException("the pass has ended");
        }
        return batch;
    }

    /** Returns the next batch, or an empty Optional if the pass has ended. */
    public Optional<Value> nextOptional() {
        return Optional.ofNullable(ahead != null ? taken() : call(DistModule::dist_iterator_next_optional));
    }

    private Value taken() {
        Value batch = ahead;
        ahead = null;
        before = null;
        ValueScope.enter(batch);
        return batch;
    }

    /**
     * Returns the position at which the next batch begins; {@link Dataset#iterator(Position)} continues
     * there.
     */
    public Position position() {
        if (ahead != null) {
            return before;
        }
        dist_position position = new dist_position();
        try {
            return ask(handle -> {
                DistModule.dist_iterator_position(handle, position);
                return Position.of(position);
            });
        } finally {
            position.delete();
        }
    }

    /** Ends the pass. */
    @Override
    public void close() {
        if (ahead != null) {
            ahead.close();
            ahead = null;
        }
        super.close();
    }
}
