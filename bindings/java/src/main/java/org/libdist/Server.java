// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.libdist.internal.DistModule;
import org.libdist.internal.DistModuleConstants;
import org.libdist.internal.Text;
import org.libdist.internal.dist_server_options;

/**
 * A task that a {@link Coordinator} gives work to, as tf.distribute.Server is: of job "ps", it keeps variables; of job
 * "worker", it runs closures. What it reads of the environment and the rules are in libdist's server.h; {@code
 * libdist-grpc.so} has to be installed.
 *
 * <pre>{@code
 * try (Server server = new Server()) { // as TF_CONFIG says: every task runs the same program
 *     server.register("train", this::train);
 *     server.start();
 *     server.join(); // until the coordinator says that it is over
 * }
 * }</pre>
 *
 * One that was started goes on until close(), also where the program forgets it.
 */
public final class Server extends NativeObject {
    /** That serve: the collector leaves them alone. */
    private static final Set<Server> STARTED = ConcurrentHashMap.newKeySet();

    private final Wait.Calls waits = new Wait.Calls(); // none of them ends but by stop()
    private volatile boolean serves;

    private Server(long handle) {
        super(new UnlockedNative("server", handle, DistModule::dist_server_destroy));
    }

    /** Of the task that TF_CONFIG says. */
    public Server() {
        this(null, null, OptionalInt.empty(), ServerOptions.DEFAULT);
    }

    /** Of a task of a cluster. */
    public Server(ClusterSpec cluster, String job, int index) {
        this(cluster, job, OptionalInt.of(index), ServerOptions.DEFAULT);
    }

    /**
     * It does not listen before start(). With port 0 of the task's address the system chooses one.
     *
     * @param cluster null: as TF_CONFIG says
     * @param job null: as TF_CONFIG says
     * @param index empty: as TF_CONFIG says
     */
    public Server(ClusterSpec cluster, String job, OptionalInt index, ServerOptions options) {
        this(create(options, (uses, raw, out) -> DistModule.dist_server_create(uses.ofNullable(cluster),
                Texts.orNull(job),
                Objects.requireNonNull(index, "index").orElse(DistModuleConstants.DIST_TASK_UNSET), raw, out)));
    }

    /** One for trying things out: {@link #local(ServerOptions)}. */
    public static Server local() {
        return local(ServerOptions.DEFAULT);
    }

    /**
     * One for trying things out: at 127.0.0.1, on a port that the system chooses at start(). A coordinator may have it for
     * any worker or parameter server of its cluster.
     */
    public static Server local(ServerOptions options) {
        return new Server(create(options, (uses, raw, out) -> DistModule.dist_server_create_local(raw, out)));
    }

    @FunctionalInterface
    private interface Create {
        void with(Uses uses, dist_server_options options, long[] out);
    }

    private static long create(ServerOptions options, Create create) {
        Objects.requireNonNull(options, "options");
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            create.with(uses, options.toNative(uses), out);
            return out[0];
        }
    }

    /**
     * Registers a closure, before start().
     *
     * @param name of up to 255 bytes
     */
    public void register(String name, ClosureFunction fn) {
        Objects.requireNonNull(fn, "fn");
        byte[] text = Texts.bytes(name, "name");
        Calls.<RuntimeException>keep(
                closure(fn), (uses, token) -> DistModule.dist_server_register(uses.of(this), text, token));
    }

    /**
     * As {@link #register}, of a function by which a parameter server changes variables: {@link Closure#update} and {@link
     * Coordinator#update} name it.
     */
    public void registerUpdate(String name, ServerUpdateFunction fn) {
        Objects.requireNonNull(fn, "fn");
        byte[] text = Texts.bytes(name, "name");
        Calls.<RuntimeException>keep(
                update(fn), (uses, token) -> DistModule.dist_server_register_update(uses.of(this), text, token));
    }

    /** A function for other processes: they read of what it throws, and no caller here. */
    private abstract static class Remote extends Target {
        @Override
        void keep(Throwable t) {}
    }

    /** It knows nothing of the server, which the collector may find. */
    private static Target closure(ClosureFunction fn) {
        return new Remote() {
            @Override
            long closure(long handle, long args) throws Exception {
                Closure closure = new Closure(handle);
                try (Value given = Value.borrowed(args)) {
                    return Value.handedOver(fn.call(closure, given));
                } finally {
                    closure.end();
                }
            }
        };
    }

    private static Target update(ServerUpdateFunction fn) {
        return new Remote() {
            @Override
            void updateVariables(long tensors, long n, long args) throws Exception {
                List<Elements> variables = new ArrayList<>();
                try (Value given = Value.borrowed(args)) {
                    for (long i = 0; i < n; i++) {
                        variables.add(Elements.tensorAt(tensors, i));
                    }
                    fn.update(List.copyOf(variables), given);
                } finally {
                    variables.forEach(Elements::end);
                }
            }
        };
    }

    /** Listens, and makes the threads that closures run on. */
    public void start() {
        ask(handle -> {
            DistModule.dist_server_start(handle);
            serves = true;
            STARTED.add(this);
            return null;
        });
    }

    /** Where coordinators find it: "grpc://host:port", with the port that the system has chosen. */
    public String target() {
        return ask(handle -> Texts.of(DistModule.dist_server_target(handle)));
    }

    /**
     * What it has done, as a trace, JSON of Chrome's trace-event format, for Perfetto. A worker has a row for each thread,
     * with closures and in them what they ask of parameter servers; a parameter server has one, with the calls to it.
     * Traces of a job's servers and of its coordinator can be joined.
     */
    public String writeTrace() {
        return written(Text::write_server_trace);
    }

    /** As {@link #join(Duration)}, without limit. */
    public void join() {
        join(Duration.ofNanos(-1));
    }

    /**
     * Waits for its end: that of its coordinator, {@link #stop} or close(). An interrupt ends the wait: CANCELLED, and the
     * thread stays interrupted. The server listens until close().
     *
     * @param timeout zero: not at all; negative: without limit
     * @throws DistException DEADLINE_EXCEEDED not within the time; or no coordinator has come within startTimeout.
     *         UNAVAILABLE the coordinator has not been heard of for two leases
     */
    public void join(Duration timeout) {
        join(timeout, null);
    }

    /**
     * As {@link #join(Duration)}.
     *
     * @param cancel ends the wait, too; null: nothing
     */
    public void join(Duration timeout, Cancel cancel) {
        long nanos = Durations.nanos(timeout, "timeout");
        try (Uses uses = new Uses()) {
            long handle = uses.of(this);
            Wait.run(uses, waits, cancel, own -> DistModule.dist_server_join(handle, nanos, own));
        }
    }

    /** Ends {@link #join}, which returns. */
    public void stop() {
        ask(handle -> {
            DistModule.dist_server_stop(handle);
            return null;
        });
    }

    /**
     * Ends it: its coordinator loses it, join() returns, closures that run find themselves cancelled, and it waits until they
     * have returned.
     *
     * @throws DistException FAILED_PRECONDITION inside one of its functions
     */
    @Override
    public void close() {
        if (!leave() || !((UnlockedNative) owner).end(DistModule::dist_server_destroy)) {
            return;
        }
        STARTED.remove(this);
        super.close(); // the cleaner finds nothing left to do
    }

    /** Lets calls of join() return, unless this is one of the server's functions. False: it is closed. */
    private boolean leave() {
        if (owner.isClosed()) {
            return false;
        }
        try {
            return ask(handle -> {
                try {
                    DistModule.dist_server_join(handle, 0, 0);
                } catch (DistException e) {
                    if (serves && e.status() == Status.FAILED_PRECONDITION) {
                        DistModule.dist_server_destroy(handle); // refuses for the same reason, in its own words
                    }
                }
                DistModule.dist_server_stop(handle);
                return true;
            });
        } catch (DistException e) {
            if (owner.isClosed()) { // by another thread, just now
                return false;
            }
            throw e;
        }
    }
}
