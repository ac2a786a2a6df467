// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import java.util.function.LongFunction;
import org.libdist.internal.DistModule;

/**
 * The running call of a function on a worker. It reads and changes variables on the parameter servers. Its
 * changes are applied together, exactly once, after the function has returned normally; its own reads do not
 * see them. It is valid only while the function runs.
 */
public final class Closure {
    private static final String OVER = "the closure is over: its function has returned";

    private final String name;
    private final long id;
    private final int worker;
    private final ResultCancel wanted;
    private long handle; // 0: the function has returned

    Closure(long handle) {
        this.handle = handle;
        name = Texts.of(DistModule.dist_closure_name(handle));
        id = DistModule.dist_closure_id(handle);
        worker = DistModule.dist_closure_worker(handle);
        wanted = new ResultCancel(
                DistModule.dist_closure_cancel(handle), "nobody wants the closure's result any more", OVER);
    }

    /** Queries the native closure. Only one thread at a time uses it. */
    private synchronized <T> T ask(LongFunction<T> question) {
        if (handle == 0) {
            throw new DistException(Status.FAILED_PRECONDITION, OVER);
        }
        return question.apply(handle);
    }

    /** Ends the closure after its function has returned. */
    void end() {
        synchronized (this) {
            handle = 0;
        }
        wanted.end();
    }

    /** Returns the name under which the closure was scheduled. */
    public String name() {
        return name;
    }

    /**
     * Returns the number of the closure: how many closures the coordinator scheduled before it. Returns -1 if
     * the function creates a per-worker value.
     */
    public long id() {
        return id;
    }

    /** Returns the index of the task that runs the closure. */
    public int worker() {
        return worker;
    }

    /**
     * Returns whether the result is no longer needed, because another closure has failed or the coordinator
     * is gone.
     */
    public boolean isCancelled() {
        return wanted.isCancelled();
    }

    /**
     * Returns an object for calls in which the function waits, for example for {@link RunOptions#cancel}. It
     * is signalled, with a delay of a few milliseconds, when the result is no longer needed. It is closed
     * with the closure.
     */
    public Cancel cancel() {
        return wanted.cancel();
    }

    /**
     * Reads variables. The values are current, or older by at most {@link CoordinatorVariableOptions#maxStaleness} of
     * this worker's closures. All values from one parameter server are from the same moment.
     *
     * @throws DistException ABORTED a parameter server is lost; rethrow it, because the coordinator handles
     *         it
     */
    public List<Value> read(String... names) {
        return ask(own -> RemoteVariables.read(
                names, (texts, n, out) -> DistModule.dist_closure_read(own, texts, n, out)));
    }

    /**
     * Reads rows of a variable, for example of an embedding: row k of the result is row indices[k]. The
     * indices are of type I32 or I64.
     */
    public Value readRows(String name, Value indices) {
        return ask(own -> RemoteVariables.rows(
                name, indices, (text, rows, out) -> DistModule.dist_closure_read_rows(own, text, rows, out)));
    }

    /**
     * Changes a variable after the closure has succeeded. The value is retained until then, and its elements
     * must not change meanwhile.
     */
    public void assign(String name, Assign how, Value value) {
        ask(own -> {
            RemoteVariables.assign(
                    name, how, value, (text, code, of) -> DistModule.dist_closure_assign(own, text, code, of));
            return null;
        });
    }

    /**
     * Changes rows of a variable by indexed slices after the closure has succeeded, row by row in the given
     * order; see {@link #assign}.
     */
    public void scatter(String name, Scatter how, Value slices) {
        ask(own -> {
            RemoteVariables.scatter(
                    name, how, slices, (text, code, of) -> DistModule.dist_closure_scatter(own, text, code, of));
            return null;
        });
    }

    /** Same as {@link #update(String, List, Value)}, without arguments. */
    public void update(String function, List<String> names) {
        update(function, names, null);
    }

    /**
     * Changes variables, after the closure has succeeded, with a function that the parameter servers have
     * registered; see {@link Server#registerUpdate}. The variables must have the same parts on the same
     * servers. If the function throws, the closure fails.
     *
     * @param arguments may be null; otherwise retained like the value of {@link #assign}
     */
    public void update(String function, List<String> names, Value arguments) {
        ask(own -> {
            RemoteVariables.update(function, names, arguments,
                    (text, texts, n, of) -> DistModule.dist_closure_update(own, text, texts, n, of));
            return null;
        });
    }

    /**
     * Returns the value that {@link Coordinator#createPerWorker} created on this worker. If its function
     * returned a value made by {@link Value#wrapObject}, {@link Value#object} returns the object.
     */
    public Value perWorker(String name) {
        byte[] text = Texts.bytes(name, "name");
        return ask(own -> {
            long[] out = new long[1];
            DistModule.dist_closure_per_worker(own, text, out);
            return Value.taken(out[0]);
        });
    }
}
