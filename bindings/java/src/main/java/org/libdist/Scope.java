// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.function.LongConsumer;

/** A scope that a thread is in until it closes this object; see {@link Strategy#scope}. */
public final class Scope implements AutoCloseable {
    private final CrossReplica strategy;
    private final LongConsumer exit;
    private final Thread thread = Thread.currentThread();
    private boolean closed;

    Scope(CrossReplica strategy, LongConsumer enter, LongConsumer exit) {
        this.strategy = strategy;
        this.exit = exit;
        call(enter);
    }

    private void call(LongConsumer function) {
        strategy.ask(handle -> {
            function.accept(handle);
            return null;
        });
    }

    /**
     * Exits the scope. Does nothing if it has already been exited.
     *
     * @throws DistException FAILED_PRECONDITION called on another thread, or a scope that was entered later
     *         is still open
     */
    @Override
    public void close() {
        if (Thread.currentThread() != thread) {
            throw new DistException(
                    Status.FAILED_PRECONDITION, "the scope is that of thread " + thread.getName());
        }
        if (!closed) {
            call(exit);
            closed = true;
        }
    }
}
