// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.libdist.internal.Callbacks;
import org.libdist.internal.DistModule;

/** Receives all calls from libdist into Java: finds the target of a token, and lets no exception escape. */
final class Upcalls extends Callbacks {
    private static final ConcurrentMap<Long, Target> TARGETS = new ConcurrentHashMap<>();
    private static final AtomicLong LAST = new AtomicLong();
    private static final AtomicInteger COUNT = new AtomicInteger();
    private static final String KEPT = "org.libdist.kept";
    private static final Upcalls INSTANCE = new Upcalls();

    static {
        DistModule.set_callbacks(INSTANCE);
    }

    private Upcalls() {}

    /** Returns a new token. It never stands for another target later. */
    static long register(Target target) {
        long token = LAST.incrementAndGet();
        TARGETS.put(token, target);
        if (COUNT.getAndIncrement() == 0) {
            keepLoader();
        }
        return token;
    }

    static void unregister(long token) {
        if (TARGETS.remove(token) != null && COUNT.decrementAndGet() == 0) {
            keepLoader();
        }
    }

    /**
     * While there are tokens, keeps these classes and their loader, although native code refers to them weakly: a
     * place that all class loaders share refers to this one.
     */
    private static void keepLoader() {
        synchronized (INSTANCE) {
            if (COUNT.get() > 0) {
                System.getProperties().put(KEPT, INSTANCE);
            } else {
                System.getProperties().remove(KEPT);
            }
        }
    }

    static boolean isEmpty() {
        return COUNT.get() == 0;
    }

    static long lastToken() {
        return LAST.get();
    }

    /**
     * Returns how many tokens later than {@code token} are registered, except for those that strategies keep for
     * their runs.
     */
    static int sizeSince(long token) {
        return (int) TARGETS.entrySet()
                .stream()
                .filter(each -> each.getKey() > token && !(each.getValue() instanceof RunSlot))
                .count();
    }

    /** Returns how many tokens later than {@code token} are registered for runs. */
    static int runsSince(long token) {
        return (int) TARGETS.entrySet()
                .stream()
                .filter(each -> each.getKey() > token && each.getValue() instanceof RunSlot)
                .count();
    }

    /** Returns the target of a token; null if it is no longer registered. */
    static Target known(long token) {
        return TARGETS.get(token);
    }

    static Target target(long token) {
        Target target = TARGETS.get(token);
        if (target == null) { // a replica that begins after its run's deadline
            throw tooLate();
        }
        return target;
    }

    static DistException tooLate() {
        return new DistException(Status.CANCELLED, "the call that this function belongs to is over");
    }

    /** Returns the requests of a strategy that libdist still has. */
    static List<Request.Call<?>> requestsOf(Strategy strategy) {
        List<Request.Call<?>> all = new ArrayList<>();
        for (Target each : TARGETS.values()) {
            if (each instanceof Request.Call && ((Request.Call<?>) each).strategy == strategy) {
                all.add((Request.Call<?>) each);
            }
        }
        return all;
    }

    @FunctionalInterface
    private interface Call {
        long on(Target target) throws Exception;
    }

    /**
     * A thread on which functions are called. Library threads serve many runs, so an interrupt that a
     * function leaves on the thread, or that arrives after it, must not reach the next function.
     */
    private static final class Border {
        /** {depth, 1 for a libdist thread}: of the JVM's own class, because a thread outlives class loaders. */
        private static final ThreadLocal<int[]> HERE = new ThreadLocal<>();

        /**
         * Returns whether this is a library thread. A Java thread has come from Java code, so its first call
         * is not one of libdist's.
         */
        private static boolean isLibrarys() {
            return StackWalker.getInstance()
                    .walk(frames -> frames.reduce((newer, older) -> older))
                    .map(oldest -> oldest.getClassName().startsWith("org.libdist.internal."))
                    .orElse(false);
        }

        static int[] enter() {
            int[] here = HERE.get();
            if (here == null) {
                here = new int[] {0, isLibrarys() ? 1 : 0};
                HERE.set(here);
            }
            if (here[0]++ == 0) {
                clear(here);
            }
            return here;
        }

        static void leave(int[] here) {
            if (here != null && --here[0] == 0) {
                clear(here);
            }
        }

        private static void clear(int[] here) {
            if (here[1] != 0) {
                Thread.interrupted();
            }
        }
    }

    /** Returns the result, or the negative of a status after reporting what was thrown. */
    private static long call(long token, Call call) {
        Target target = null;
        int[] border = null;
        try {
            border = Border.enter();
            target = target(token);
            return call.on(target);
        } catch (Throwable t) {
            if (target != null) {
                target.keep(t);
            }
            return -Target.tell(t);
        } finally {
            Border.leave(border);
        }
    }

    /**
     * Calls a function that returns no result to libdist. What it throws is kept and found after the call.
     */
    private static void run(long token, Call call) {
        Target target = TARGETS.get(token);
        if (target != null) {
            int[] border = null;
            try {
                border = Border.enter();
                call.on(target);
            } catch (Throwable t) {
                target.keep(t);
            } finally {
                Border.leave(border);
            }
        }
    }

    @Override
    public int replica(long token, long replica, int id, int numReplicas) {
        return (int) -call(token, target -> {
            target.replica(replica, id, numReplicas);
            return 0;
        });
    }

    @Override
    public long values(long token, long replica, long args, long kwargs) {
        return call(token, target -> target.values(replica, args, kwargs));
    }

    @Override
    public long merge(long token, long strategy, long args, long kwargs) {
        return call(token, target -> target.merge(strategy, args, kwargs));
    }

    @Override
    public long update(long token, int replica, byte[] device, long copy, long args, long kwargs) {
        return call(token, target -> target.update(replica, Texts.of(device), copy, args, kwargs));
    }

    @Override
    public long source(long token, long index) {
        return element(token, target -> target.source(index));
    }

    @Override
    public long file_source(long token, long file, byte[] name, long index) {
        return element(token, target -> target.fileSource(file, Texts.of(name), index));
    }

    /** Calls a source; null is the end. */
    private static long element(long token, Call call) {
        long element = call(token, call);
        return element != 0
                ? element
                : -DistModule.fail(Status.OUT_OF_RANGE.code(), Texts.bytes("the end of the source"));
    }

    @Override
    public long dataset(long token, int numPipelines, int pipeline, int numReplicas) {
        return call(token, target -> target.dataset(numPipelines, pipeline, numReplicas));
    }

    @Override
    public long dataset_reduce(long token, long state, long batch) {
        return call(token, target -> target.datasetReduce(state, batch));
    }

    @Override
    public long value(long token, int replica, int numReplicas) {
        return call(token, target -> target.value(replica, numReplicas));
    }

    @Override
    public long initial(long token) {
        return call(token, Target::initial);
    }

    @Override
    public long method(long token, byte[] name, long cancel, long timeoutNanos, long args) {
        return call(token, target -> target.method(Texts.of(name), cancel, timeoutNanos, args));
    }

    @Override
    public long closure(long token, long closure, long args) {
        return call(token, target -> target.closure(closure, args));
    }

    @Override
    public long create_state(long token, long replica) {
        return call(token, target -> target.createState(replica));
    }

    @Override
    public void destroy_state(long token, long state) {
        run(token, target -> {
            target.destroyState(state);
            return 0;
        });
    }

    @Override
    public int warm_up(long token, long replica) {
        return (int) -call(token, target -> {
            target.warmUp(replica);
            return 0;
        });
    }

    @Override
    public int step(long token, long replica, long batch) {
        return (int) -call(token, target -> {
            target.step(replica, batch);
            return 0;
        });
    }

    @Override
    public int update_variables(long token, long variables, long n, long args) {
        return (int) -call(token, target -> {
            target.updateVariables(variables, n, args);
            return 0;
        });
    }

    @Override
    public int partition(long token, long spec, long partitions) {
        return (int) -call(token, target -> {
            target.partition(spec, partitions);
            return 0;
        });
    }

    @Override
    public void loop(long token, long begin, long end) {
        run(token, target -> {
            target.loop(begin, end);
            return 0;
        });
    }

    @Override
    public void reduce(long token, long acc, long in, long count, int dtype) {
        run(token, target -> {
            target.reduce(acc, in, count, DType.of(dtype));
            return 0;
        });
    }

    @Override
    public void apply(long token, long tensor, long first, long count, int dtype, long gradient,
            long parameter, int numStates, long states) {
        run(token, target -> {
            target.apply(tensor, first, count, DType.of(dtype), gradient, parameter, numStates, states);
            return 0;
        });
    }

    @Override
    public int reduce_components(long token, int op, long components, long n, long out) {
        return (int) -call(token, target -> {
            target.reduceComponents(ReduceOp.of(op), components, n, out);
            return 0;
        });
    }

    @Override
    public int broadcast_copies(long token, long value, long copies, long n) {
        return (int) -call(token, target -> {
            target.broadcastCopies(value, copies, n);
            return 0;
        });
    }

    @Override
    public int gather_components(long token, long components, long n, int axis, long out) {
        return (int) -call(token, target -> {
            target.gatherComponents(components, n, axis, out);
            return 0;
        });
    }

    @Override
    public void log(long token, int level, byte[] message) {
        run(token, target -> {
            target.log(LogLevel.of(level), Texts.of(message));
            return 0;
        });
    }

    @Override
    public int execute(long token, long task, long taskData) {
        Target target = TARGETS.get(token);
        int[] border = null;
        try {
            border = Border.enter();
            return target != null && target.execute(task, taskData) ? 0 : 1;
        } catch (Throwable t) { // before the executor was asked
            return 1;
        } finally {
            Border.leave(border);
        }
    }

    @Override
    public void release(long token) {
        run(token, target -> {
            target.released();
            return 0;
        });
        unregister(token);
    }
}
