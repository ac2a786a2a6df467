// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * Closes many values at once: those that this thread creates or receives from libdist while the scope is its
 * innermost open one. Use it in a try-with-resources statement; scopes must be closed in the reverse order.
 *
 * <pre>{@code
 * try (ValueScope scope = ValueScope.create()) {
 *     Value sum = strategy.reduce(ReduceOp.SUM, strategy.run(step, batch), 0);
 *     losses.add(sum.tensor().item());
 *     best = scope.keep(strategy.localResults(sum)); // outlives the scope
 * } // all others are closed
 * }</pre>
 *
 * <p>The arguments that a function receives are closed when it returns, independently of scopes.
 */
public final class ValueScope implements AutoCloseable {
    private static final ThreadLocal<ValueScope> INNERMOST = new ThreadLocal<>();

    private final Set<Value> values =
            Collections.synchronizedSet(Collections.newSetFromMap(new IdentityHashMap<>()));
    private final ValueScope outer = INNERMOST.get();
    private final Thread thread = Thread.currentThread();
    private boolean closed;

    private ValueScope() {}

    /** Creates a scope, which becomes the innermost one of this thread. */
    public static ValueScope create() {
        ValueScope scope = new ValueScope();
        INNERMOST.set(scope);
        return scope;
    }

    /** Adds a value that this thread has received to its innermost scope. */
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

    /** Returns the number of values that the scope would close now. */
    public int size() {
        return values.size();
    }

    /**
     * Removes a value from this scope; for an item, the value to which it belongs. The next outer scope
     * closes it, or its owner if there is no outer scope.
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
     * Closes the values of the scope. Does nothing if the scope is closed.
     *
     * @throws DistException FAILED_PRECONDITION called on another thread, or a scope that was opened later is
     *         still open
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
