// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.WeakReference;
import java.nio.Buffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_collective_options;

/**
 * One running copy of the replica function: its id, and its side of every collective. It is valid only on the
 * thread of the function that received it, until that function returns; otherwise its methods throw
 * FAILED_PRECONDITION. A logical device of a replica is a Replica too, whose peers are the other devices of
 * that replica; see {@link #runOnDevices}.
 *
 * <p>Buffers must be direct and in the byte order of the machine ({@link DirectBuffers}). They are used in
 * place, without a copy, from position to limit; neither changes.
 */
public final class Replica extends DeviceContext {
    private static final ThreadLocal<Replica> CURRENT = new ThreadLocal<>();
    private static final ThreadLocal<WeakReference<Replica>> DEFAULT = new ThreadLocal<>();

    private final Strategy strategy;
    private final long handle;
    private final int id;
    private final int numReplicas;
    private final Thread thread = Thread.currentThread();
    private final RunCall run; // null: the thread's default replica
    private List<Work> works = List.of();
    private boolean covered; // its thread is a logical device of it
    private boolean ended;

    Replica(Strategy strategy, long handle, RunCall run) {
        this(strategy, handle, run, DistModule.dist_replica_id(handle), DistModule.dist_replica_num_replicas(handle));
    }

    Replica(Strategy strategy, long handle, RunCall run, int id, int numReplicas) {
        this.strategy = strategy;
        this.handle = handle;
        this.run = run;
        this.id = id;
        this.numReplicas = numReplicas;
    }

    /**
     * Called when the function starts on this thread. Returns the previous replica of the thread, for {@link
     * #end}.
     */
    Replica begin() {
        Replica outer = CURRENT.get();
        if (outer != null) {
            outer.covered = true;
        }
        CURRENT.set(this);
        return outer;
    }

    /** Called when the function has returned: the native replica may be destroyed at any time. */
    void end(Replica outer) {
        if (outer != null) {
            outer.covered = false;
        }
        CURRENT.set(outer);
        ended = true;
        if (!works.isEmpty()) {
            run.leave(works);
        }
    }

    /**
     * Returns the replica whose function this thread is in. Outside all functions, returns the only replica
     * of the thread's default strategy, which has no peers. In cross-replica context, returns null.
     */
    public static Replica current() {
        long here = DistModule.dist_get_replica();
        Replica current = CURRENT.get();
        if (here == 0 || (current != null && current.handle == here)) {
            return here == 0 ? null : current;
        }
        WeakReference<Replica> reference = DEFAULT.get(); // weak: a thread outlives class loaders
        Replica byDefault = reference == null ? null : reference.get();
        if (byDefault == null || byDefault.handle != here) {
            byDefault = new Replica(Strategy.known(DistModule.dist_replica_strategy(here)), here, null);
            DEFAULT.set(new WeakReference<>(byDefault));
        }
        return byDefault;
    }

    /** Returns whether this thread is in a function of a replica of that strategy. */
    static boolean isInside(Strategy strategy) {
        Replica current = CURRENT.get();
        return current != null && current.strategy == strategy;
    }

    /** Returns what a peer of this thread's replica threw and a report describes; null if it is not known. */
    static Throwable reasonHere(String report) {
        Replica current = CURRENT.get();
        return current == null || current.run == null ? null : current.run.reason(report);
    }

    /**
     * Returns the state that {@link InstancesOptions#createState} created for this instance; null if there is
     * none.
     */
    public Object instanceState() {
        return InstanceStates.of(DistModule.dist_instance_state(active("dist_instance_state")));
    }

    /**
     * Same as {@link #instanceState()}, cast to a class.
     *
     * @throws ClassCastException the state is of another class
     */
    public <T> T instanceState(Class<T> type) {
        return type.cast(instanceState());
    }

    /**
     * Throws if the function that this replica runs should stop: its request or run was cancelled, or its
     * deadline has expired. Call it from time to time in long functions that call no collectives; collectives
     * check by themselves.
     */
    public void check() {
        DistModule.dist_replica_check(active("dist_replica_check"));
    }

    boolean isHere() {
        return Thread.currentThread() == thread && !ended;
    }

    @Override
    long active(String function) {
        Thread here = Thread.currentThread();
        if (here != thread || ended || covered) {
            throw DistException.of(Status.FAILED_PRECONDITION, function, "replica " + id + whyNot(here));
        }
        if (here.isInterrupted() && run != null) {
            run.interrupted(here);
        }
        return handle;
    }

    private String whyNot(Thread here) {
        if (ended) {
            return " is not running. Its handle is valid only inside its function.";
        }
        return here != thread ? " is that of the thread that its function runs on, " + thread.getName()
                              : " waits for its logical devices: use what their function gets";
    }

    /** Keeps an object alive until the run has ended. */
    void keep(Object object) {
        if (run != null) {
            run.hold(object);
        }
    }

    void began(Work work) {
        if (works.isEmpty()) {
            works = new ArrayList<>();
        }
        works.add(work);
    }

    void forget(Work work) {
        works.remove(work);
    }

    /**
     * Returns this replica's id in 0 .. numReplicas()-1, which is its rank in every collective; for a logical
     * device, the number of the device.
     */
    public int id() {
        return id;
    }

    /** Returns the number of replicas in sync; for a logical device, the number of logical devices. */
    @Override
    public int numReplicas() {
        return numReplicas;
    }

    @Override
    public Strategy strategy() {
        return strategy;
    }

    /**
     * Reduces {@code data} over all replicas, in place: afterwards every replica holds the result. By default, elements
     * are folded from left to right by replica id: the bits are the same on every replica and in every run.
     */
    public void allReduce(ReduceOp op, FloatBuffer data) {
        allReduce(op, data, CollectiveOptions.DEFAULT);
    }

    /** Same as {@link #allReduce(ReduceOp, FloatBuffer)}, with options. */
    public void allReduce(ReduceOp op, FloatBuffer data, CollectiveOptions options) {
        allReduce(op, DType.F32, data, data.order(), options);
    }

    /** Same as {@link #allReduce(ReduceOp, FloatBuffer)}, for doubles. */
    public void allReduce(ReduceOp op, DoubleBuffer data) {
        allReduce(op, data, CollectiveOptions.DEFAULT);
    }

    /** Same as {@link #allReduce(ReduceOp, FloatBuffer)}, for doubles and with options. */
    public void allReduce(ReduceOp op, DoubleBuffer data, CollectiveOptions options) {
        allReduce(op, DType.F64, data, data.order(), options);
    }

    /**
     * Same as {@link #allReduce(ReduceOp, FloatBuffer)}, for ints, which wrap around and do not support MEAN.
     */
    public void allReduce(ReduceOp op, IntBuffer data) {
        allReduce(op, data, CollectiveOptions.DEFAULT);
    }

    /** Same as {@link #allReduce(ReduceOp, IntBuffer)}, with options. */
    public void allReduce(ReduceOp op, IntBuffer data, CollectiveOptions options) {
        allReduce(op, DType.I32, data, data.order(), options);
    }

    /** Same as {@link #allReduce(ReduceOp, IntBuffer)}, for longs. */
    public void allReduce(ReduceOp op, LongBuffer data) {
        allReduce(op, data, CollectiveOptions.DEFAULT);
    }

    /** Same as {@link #allReduce(ReduceOp, IntBuffer)}, for longs and with options. */
    public void allReduce(ReduceOp op, LongBuffer data, CollectiveOptions options) {
        allReduce(op, DType.I64, data, data.order(), options);
    }

    private void allReduce(
            ReduceOp op, DType dtype, Buffer data, ByteOrder order, CollectiveOptions options) {
        Buffers.check(data, order, true);
        if (!options.quick) {
            allReduce(op, List.of(Tensor.of(dtype, data, data.remaining())), options);
            return;
        }
        DistModule.quick_all_reduce(active("dist_all_reduce"), op.code, dtype.code, first(data),
                data.remaining(), options.tag, options.timeoutNanos);
    }

    /** Returns a view that begins at element 0, where native code starts. */
    private static Buffer first(Buffer data) {
        return data.position() == 0 ? data : data.slice();
    }

    /** Copies the root's data to every replica. */
    public void broadcast(int root, FloatBuffer data, CollectiveOptions options) {
        broadcast(root, DType.F32, data, data.order(), options);
    }

    /** Same as {@link #broadcast(int, FloatBuffer, CollectiveOptions)}, for doubles. */
    public void broadcast(int root, DoubleBuffer data, CollectiveOptions options) {
        broadcast(root, DType.F64, data, data.order(), options);
    }

    /** Same as {@link #broadcast(int, FloatBuffer, CollectiveOptions)}, for ints. */
    public void broadcast(int root, IntBuffer data, CollectiveOptions options) {
        broadcast(root, DType.I32, data, data.order(), options);
    }

    /** Same as {@link #broadcast(int, FloatBuffer, CollectiveOptions)}, for longs. */
    public void broadcast(int root, LongBuffer data, CollectiveOptions options) {
        broadcast(root, DType.I64, data, data.order(), options);
    }

    private void broadcast(int root, DType dtype, Buffer data, ByteOrder order, CollectiveOptions options) {
        Buffers.check(data, order, true);
        if (!options.quick) {
            broadcast(root, List.of(Tensor.of(dtype, data, data.remaining())), options);
            return;
        }
        DistModule.quick_broadcast(active("dist_broadcast"), root, dtype.code, first(data), data.remaining(),
                options.tag, options.timeoutNanos);
    }

    /**
     * Waits until every member has arrived. All writes that a member made before the barrier are visible to
     * all members after it.
     */
    public void barrier() {
        barrier(CollectiveOptions.DEFAULT);
    }

    @Override
    public Void barrier(CollectiveOptions options) {
        if (!options.quick) {
            return super.barrier(options);
        }
        DistModule.quick_barrier(active("dist_barrier"), options.tag, options.timeoutNanos);
        return null;
    }

    /**
     * Returns the asynchronous collectives: they return at once, and the returned {@link Work} is in
     * progress.
     */
    public Collectives<Work> async() {
        return new Begun<>(false, Work.class);
    }

    /**
     * Returns the planned collectives: each call is collective and blocks, and the returned {@link Plan} can
     * be repeated.
     */
    public Collectives<Plan> planned() {
        return new Begun<>(true, Plan.class);
    }

    /** Collectives with options->out_work. */
    private final class Begun<R> extends Collectives<R> {
        private final boolean planned;
        private final Class<R> type;

        Begun(boolean planned, Class<R> type) {
            this.planned = planned;
            this.type = type;
        }

        @Override
        R make(String name, Call call, List<Tensor> in, List<Tensor> out, int n, CollectiveOptions options) {
            CollectiveChecks.sizes(options, in, out, numReplicas());
            Tokens tokens = new Tokens();
            boolean made = false;
            try (Uses uses = new Uses()) {
                dist_collective_options raw = options.toNative(uses, tokens);
                raw.begin_work();
                raw.setPlanned(planned ? 1 : 0);
                call.with(active(name), uses.tensors(in), uses.written(out), n, raw);
                made = true;
                Object[] used = {
                        in == null ? null : in.toArray(), out == null ? null : out.toArray(), options};
                return type.cast(
                        planned ? plan(raw.work(), used, tokens) : work(raw.work(), used, tokens));
            } finally {
                if (!made) {
                    tokens.end();
                }
            }
        }

        private Plan plan(long work, Object used, Tokens tokens) {
            return new Plan(strategy.dependent("plan", work, h -> {
                DistModule.dist_work_destroy(h);
                tokens.end();
            }), Replica.this, used);
        }

        private Work work(long handle, Object used, Tokens tokens) {
            Work work = new Work(Replica.this, handle, used, tokens);
            began(work);
            if (!tokens.isEmpty()) {
                work.whenComplete((nothing, failure) -> tokens.end());
            }
            return work;
        }
    }

    /**
     * Ends the part of a replica that entered with {@link Strategy#enter(int)}, on the thread that entered,
     * and waits for the other replicas.
     *
     * @throws DistException as {@link Strategy#run}: every replica's thread gets the failure of the run
     */
    public void leave() {
        leave(null);
    }

    /** Same as {@link #leave()}, with the failure of this replica; null means success. */
    public void leave(Throwable failure) {
        long leaving = active("dist_replica_leave");
        int status = failure == null ? 0 : Target.tell(failure);
        end(null);
        HostRun host = (HostRun) run;
        host.leave(leaving, status);
    }
}
