// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * Closes many values at once: what this thread makes, or gets of libdist, while the scope is the innermost
 * open one. For try-with-resources; scopes end in the reverse order of their beginning.
 *
 * <pre>{@code
 * try (ValueScope scope = new ValueScope()) {
 *     Value sum = strategy.reduce(ReduceOp.SUM, strategy.runValues(step, batch), 0);
 *     losses.add(sum.tensor().item());
 *     best = scope.keep(strategy.localResults(sum)); // outlives the scope
 * } // all others are closed
 * }</pre>
 *
 * The arguments that a function is lent are closed when it returns, whatever scope there is.
 */
public final class ValueScope implements AutoCloseable {
    private static final ThreadLocal<ValueScope> INNERMOST = new ThreadLocal<>();

    private final Set<Value> values =
            Collections.synchronizedSet(Collections.newSetFromMap(new IdentityHashMap<>()));
    private final ValueScope outer = INNERMOST.get();
    private final Thread thread = Thread.currentThread();
    private boolean closed;

    /** Opens a scope on this thread. */
    public ValueScope() {
        INNERMOST.set(this);
    }

    /** A value that this thread has come by is its innermost scope's. */
    static void enter(Value value) {
        ValueScope innermost = INNERMOST.get();
        if (innermost != null) {
            innermost.values.add(value);
            value.moveTo(innermost);
        }
    }

    void forget(Value value) {
        values.remove(value);
    }

    /** How many values it would close now. */
    public int size() {
        return values.size();
    }

    /**
     * Takes a value out of this scope, of an item the value that it belongs to: the next outer scope closes
     * it, or, where there is none, its owner.
     */
    public Value keep(Value value) {
        Value whole = Objects.requireNonNull(value, "value").whole();
        if (values.contains(whole)) {
            whole.moveTo(outer);
            if (outer != null) {
                outer.values.add(whole);
            }
        }
        return value;
    }

    /**
     * Closes its values; nothing on a closed scope.
     *
     * @throws DistException FAILED_PRECONDITION another thread's, or a scope that was opened later is still
     *         open
     */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        if (Thread.currentThread() != thread) {
            throw new DistException(
                    Status.FAILED_PRECONDITION, "the scope is that of thread " + thread.getName());
        }
        if (INNERMOST.get() != this) {
            throw new DistException(Status.FAILED_PRECONDITION,
                    "a scope that was opened later is still open: close it first");
        }
        closed = true;
        if (outer == null) {
            INNERMOST.remove();
        } else {
            INNERMOST.set(outer);
        }
        List<Value> all = new ArrayList<>(values);
        all.forEach(Value::close);
    }
}
