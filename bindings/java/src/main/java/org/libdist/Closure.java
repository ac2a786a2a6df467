// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import java.util.function.LongFunction;
import org.libdist.internal.DistModule;

/**
 * A function of a worker's, while it runs: what it reads and changes of the variables of the parameter servers. Its changes
 * go there when it has returned well, all at once and once only, so that its own reads do not see them. It is for the time of
 * its function: later calls are refused.
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

    /** One call at a time, whichever thread's. */
    private synchronized <T> T ask(LongFunction<T> question) {
        if (handle == 0) {
            throw new DistException(Status.FAILED_PRECONDITION, OVER);
        }
        return question.apply(handle);
    }

    /** The function has returned. */
    void end() {
        synchronized (this) {
            handle = 0;
        }
        wanted.end();
    }

    /** The name by which it was scheduled. */
    public String name() {
        return name;
    }

    /**
     * Its number: how many closures the coordinator has scheduled before it; -1 where the function makes a per-worker value.
     */
    public long id() {
        return id;
    }

    /** The index of the task that runs it. */
    public int worker() {
        return worker;
    }

    /** Whether nobody wants its result any more: another closure has failed, or the coordinator is gone. */
    public boolean isCancelled() {
        return wanted.isCancelled();
    }

    /**
     * For what the function waits in, {@link RunOptions#cancel} for instance: signalled when nobody wants the result any
     * more, a few milliseconds later. It ends with the closure.
     */
    public Cancel cancel() {
        return wanted.cancel();
    }

    /**
     * Variables as they are now, or were at most maxStaleness of this worker's closures ago. Those of one parameter server are
     * of one moment.
     *
     * @throws DistException ABORTED a parameter server is lost: let it out, the coordinator knows what to do
     */
    public List<Value> read(String... names) {
        return ask(own -> RemoteVariables.read(
                names, (texts, n, out) -> DistModule.dist_closure_read(own, texts, n, out)));
    }

    /** Rows of a variable, as an embedding is looked up: row k of the result is row indices[k], I32 or I64. */
    public Value readRows(String name, Value indices) {
        return ask(own -> RemoteVariables.rows(
                name, indices, (text, rows, out) -> DistModule.dist_closure_read_rows(own, text, rows, out)));
    }

    /**
     * Changes a variable, once the closure has ended well. The value is held until then, and its elements must stay as they
     * are.
     */
    public void assign(String name, Assign how, Value value) {
        ask(own -> {
            RemoteVariables.assign(
                    name, how, value, (text, code, of) -> DistModule.dist_closure_assign(own, text, code, of));
            return null;
        });
    }

    /** As {@link #assign}, of rows, by indexed slices: row by row as given. */
    public void scatter(String name, Scatter how, Value slices) {
        ask(own -> {
            RemoteVariables.scatter(
                    name, how, slices, (text, code, of) -> DistModule.dist_closure_scatter(own, text, code, of));
            return null;
        });
    }

    /** As {@link #update(String, List, Value)}, without arguments. */
    public void update(String function, List<String> names) {
        update(function, names, null);
    }

    /**
     * Changes variables that lie alike by a function that the parameter servers have registered, {@link
     * Server#registerUpdate}, once the closure has ended well. What the function throws is the closure's failure.
     *
     * @param arguments null: nothing; otherwise held as assign's value
     */
    public void update(String function, List<String> names, Value arguments) {
        ask(own -> {
            RemoteVariables.update(function, names, arguments,
                    (text, texts, n, of) -> DistModule.dist_closure_update(own, text, texts, n, of));
            return null;
        });
    }

    /**
     * What {@link Coordinator#createPerWorker} has made on this worker: {@link Value#object} is what its function gave as
     * {@link Value#wrapObject}.
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
