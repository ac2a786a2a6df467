// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.StrategyBox;
import org.libdist.internal.StrategyOptions;

/**
 * Holds R replicas: threads that run the same function and meet in collectives. Its methods may be called
 * from several threads.
 *
 * <pre>{@code
 * try (Strategy strategy = new Strategy(4)) {
 *     strategy.run(replica -> {
 *         FloatBuffer gradient = DirectBuffers.of(1f, 2f, 3f);
 *         replica.allReduce(ReduceOp.SUM, gradient);
 *     });
 * }
 * }</pre>
 */
public final class Strategy implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    private final Native owner;
    private final Cleaner.Cleanable cleanable;
    private final int numReplicas;

    /** How values and variables are placed. */
    public enum Kind {
        /** R replicas. */
        MIRRORED(DistModule.DIST_STRATEGY_MIRRORED),
        /** One replica, for programs that run on one or many. */
        ONE_DEVICE(DistModule.DIST_STRATEGY_ONE_DEVICE),
        /** One replica: what a program has that never chose a strategy. */
        DEFAULT(DistModule.DIST_STRATEGY_DEFAULT);

        private final int code;

        Kind(int code) {
            this.code = code;
        }
    }

    /** What replicas a strategy has; a setter that is not called leaves libdist's default. */
    public static final class Options {
        private Kind kind = Kind.MIRRORED;
        private int replicas;
        private boolean callerIsReplica = true;
        private boolean placedOnCores;
        private long timeoutNanos;

        /** How values and variables are placed. */
        public Options kind(Kind kind) {
            this.kind = kind;
            return this;
        }

        /** How many; 0: as many as this process may use CPUs. */
        public Options replicas(int replicas) {
            this.replicas = replicas;
            return this;
        }

        /** Whether run()'s caller is replica 0, or all are library threads. */
        public Options callerIsReplica(boolean callerIsReplica) {
            this.callerIsReplica = callerIsReplica;
            return this;
        }

        /** Whether each library thread has one core of its own. */
        public Options placedOnCores(boolean placedOnCores) {
            this.placedOnCores = placedOnCores;
            return this;
        }

        /** The longest wait for a peer in one collective; zero: 600 s, negative: no limit. */
        public Options timeout(Duration timeout) {
            timeoutNanos = timeout.toNanos();
            return this;
        }
    }

    /** A strategy with that many replicas; 0: as many as this process may use CPUs. */
    public Strategy(int replicas) {
        this(new Options().replicas(replicas));
    }

    /** Makes the threads, which sleep until the first run. */
    public Strategy(Options options) {
        owner = new Native(make(options));
        cleanable = CLEANER.register(this, owner::destroyIfUnused);
        numReplicas = owner.strategy.num_replicas();
    }

    private static org.libdist.internal.Strategy make(Options options) {
        StrategyOptions raw = new StrategyOptions();
        StrategyBox box = new StrategyBox();
        try {
            raw.setKind(options.kind.code);
            raw.setNum_replicas(options.replicas);
            raw.setThreads(options.callerIsReplica ? DistModule.DIST_THREADS_CALLER : DistModule.DIST_THREADS_LIBRARY);
            raw.setPlacement(options.placedOnCores ? DistModule.DIST_PLACEMENT_CORES : DistModule.DIST_PLACEMENT_FREE);
            raw.setTimeout_ns(options.timeoutNanos);
            org.libdist.internal.Strategy.make(raw, box);
            return box.get();
        } finally {
            box.delete();
            raw.delete();
        }
    }

    /** How many replicas are in sync. */
    public int numReplicas() {
        return numReplicas;
    }

    /**
     * Calls {@code body} once on every replica, at the same time, and waits for all of them.
     *
     * <p>If a replica throws, the others' pending and later collectives throw a DistException with ABORTED,
     * and run() throws what the replica that failed first threw: the same object. What other replicas threw
     * by themselves is suppressed in it. The next run starts clean.
     *
     * @throws X what the body threw
     * @throws DistException FAILED_PRECONDITION inside a replica, or when the strategy is closed
     */
    public <X extends Exception> void run(ReplicaBody<X> body) throws X {
        Objects.requireNonNull(body, "body");
        Run run = new Run(body, numReplicas);
        org.libdist.internal.Strategy strategy = owner.acquire();
        try {
            strategy.run(run);
        } catch (DistException report) {
            throw Strategy.<X>rethrow(run.cause(report));
        } finally {
            owner.release();
            run.delete();
            Reference.reachabilityFence(this); // the cleaner must not come while replicas run
        }
    }

    /**
     * Ends the run that is under way: replicas that wait in a collective, now or later in that run, get a
     * DistException with CANCELLED, and so does run()'s caller.
     */
    public void cancel() {
        owner.cancel();
        Reference.reachabilityFence(this);
    }

    /**
     * Ends the threads; nothing on a closed strategy.
     *
     * @throws DistException FAILED_PRECONDITION while a run is under way
     */
    @Override
    public void close() {
        owner.destroy();
        cleanable.clean(); // finds nothing left to do
    }

    /** Throws what the body threw, an Error too: T is erased to Throwable, so nothing is cast. */
    @SuppressWarnings("unchecked")
    private static <T extends Throwable> T rethrow(Throwable thrown) throws T {
        throw (T) thrown;
    }

    /** The native strategy, and who uses it: apart from Strategy, so that the cleaner can hold it. */
    private static final class Native {
        private final org.libdist.internal.Strategy strategy;
        private int users;
        private boolean closed;

        Native(org.libdist.internal.Strategy strategy) {
            this.strategy = strategy;
        }

        synchronized org.libdist.internal.Strategy acquire() {
            checkOpen();
            users++;
            return strategy;
        }

        synchronized void cancel() {
            checkOpen();
            strategy.cancel();
        }

        private void checkOpen() {
            if (closed) {
                throw new DistException(Status.FAILED_PRECONDITION, "the strategy is closed: make a new one");
            }
        }

        synchronized void release() {
            users--;
        }

        synchronized void destroy() {
            if (closed) {
                return;
            }
            if (users > 0) {
                throw new DistException(
                        Status.FAILED_PRECONDITION, "a run is under way: close the strategy after run() has returned");
            }
            strategy.destroy();
            closed = true;
        }

        synchronized void destroyIfUnused() {
            if (users == 0) {
                destroy();
            }
        }
    }

    /** One run: calls the body on each replica's thread and keeps what it throws on Java's side. */
    private static final class Run extends org.libdist.internal.ReplicaBody {
        private final ReplicaBody<?> body;
        private final Throwable[] thrown; // by replica, each written by its own thread

        Run(ReplicaBody<?> body, int numReplicas) {
            this.body = body;
            thrown = new Throwable[numReplicas];
        }

        @Override
        public int call(org.libdist.internal.Replica internal) {
            int id = internal.id();
            Replica replica = new Replica(internal, id, thrown.length);
            try {
                body.run(replica);
                return DistModule.DIST_OK;
            } catch (Throwable t) {
                thrown[id] = t;
                return fail(t);
            } finally {
                replica.end();
            }
        }

        /** Tells libdist, on this replica's thread; its peers read the text. */
        private static int fail(Throwable t) {
            if (t instanceof DistException) {
                DistException e = (DistException) t;
                byte[] text = e.getMessage().getBytes(StandardCharsets.UTF_8);
                return e.told() ? DistModule.failAsTold(e.status().code(), text) : DistModule.fail(e.status().code(), text);
            }
            return DistModule.fail(DistModule.DIST_UNKNOWN, t.toString().getBytes(StandardCharsets.UTF_8));
        }

        /** What the replica that the report names threw, else the lowest one that failed by itself. */
        Throwable cause(DistException report) {
            Throwable cause = null;
            int culprit = report.replica();
            if (culprit >= 0 && culprit < thrown.length && isOwn(thrown[culprit])) {
                cause = thrown[culprit];
            }
            for (Throwable t : thrown) {
                if (cause == null && isOwn(t)) {
                    cause = t;
                } else if (cause != null && t != cause && isOwn(t)) {
                    cause.addSuppressed(t);
                }
            }
            return cause == null ? report : cause;
        }

        private static boolean isOwn(Throwable t) {
            return t != null && !(t instanceof DistException && ((DistException) t).status() == Status.ABORTED);
        }
    }
}
