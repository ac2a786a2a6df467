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
 * A task to which a {@link Coordinator} sends work, like tf.distribute.Server. A task of job "ps" keeps
 * variables; a task of job "worker" runs closures. {@code libdist-grpc.so} must be installed. Servers and
 * coordinators read DIST_JOB_SECRET, DIST_TLS_CA, DIST_TLS_CERTIFICATE, DIST_TLS_KEY, DIST_PLAINTEXT,
 * DIST_BIND_ADDRESS, DIST_LEASE_SECONDS and DIST_MODULE_FOLDER from the environment. All tasks need the same
 * secret and the same lease. A server has one coordinator in its lifetime.
 *
 * <pre>{@code
 * try (Server server = Server.create()) { // from TF_CONFIG: every task runs the same program
 *     server.register("train", this::train);
 *     server.start();
 *     server.join(); // until the coordinator ends the job
 * }
 * }</pre>
 *
 * <p>A started server runs until close(), even if the program no longer refers to it.
 */
public final class Server extends NativeObject {
    /** Keeps started servers alive. */
    private static final Set<Server> STARTED = ConcurrentHashMap.newKeySet();

    private final Wait.Calls waits = new Wait.Calls(); // none of them ends but by stop()
    private volatile boolean serves;

    private Server(long handle) {
        super(new UnlockedNative("server", handle, DistModule::dist_server_destroy));
    }

    /** Creates the server of the task in TF_CONFIG. */
    public static Server create() {
        return create(null, null, OptionalInt.empty(), ServerOptions.DEFAULT);
    }

    /** Creates the server of a task of a cluster. */
    public static Server create(ClusterSpec cluster, String job, int index) {
        return create(cluster, job, OptionalInt.of(index), ServerOptions.DEFAULT);
    }

    /**
     * Creates the server of a task. It does not listen before start(). If the port of the task's address is
     * 0, the system chooses a port.
     *
     * @param cluster null means that of TF_CONFIG
     * @param job null means that of TF_CONFIG
     * @param index empty means that of TF_CONFIG
     */
    public static Server create(ClusterSpec cluster, String job, OptionalInt index, ServerOptions options) {
        return made(options, (uses, raw, out) -> DistModule.dist_server_create(uses.ofNullable(cluster),
                Texts.orNull(job),
                Objects.requireNonNull(index, "index").orElse(DistModuleConstants.DIST_TASK_UNSET), raw, out));
    }

    /** Creates a server for experiments; see {@link #createLocal(ServerOptions)}. */
    public static Server createLocal() {
        return createLocal(ServerOptions.DEFAULT);
    }

    /**
     * Creates a server for experiments, on 127.0.0.1 and a port that the system chooses at start(). A
     * coordinator can use it as any worker or parameter server of its cluster.
     */
    public static Server createLocal(ServerOptions options) {
        return made(options, (uses, raw, out) -> DistModule.dist_server_create_local(raw, out));
    }

    @FunctionalInterface
    private interface Create {
        void with(Uses uses, dist_server_options options, long[] out);
    }

    private static Server made(ServerOptions options, Create create) {
        Objects.requireNonNull(options, "options");
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            create.with(uses, options.toNative(uses), out);
            return new Server(out[0]);
        }
    }

    /**
     * Offers a closure. Call it before start().
     *
     * @param name a name of up to 255 bytes
     */
    public void register(String name, ClosureFunction fn) {
        Objects.requireNonNull(fn, "fn");
        byte[] text = Texts.bytes(name, "name");
        Calls.<RuntimeException>keep(
                closure(fn), (uses, token) -> DistModule.dist_server_register(uses.of(this), text, token));
    }

    /**
     * Offers a function with which a parameter server changes variables, for {@link Closure#update} and
     * {@link Coordinator#update}. Call it before start().
     */
    public void registerUpdate(String name, ServerUpdateFunction fn) {
        Objects.requireNonNull(fn, "fn");
        byte[] text = Texts.bytes(name, "name");
        Calls.<RuntimeException>keep(
                update(fn), (uses, token) -> DistModule.dist_server_register_update(uses.of(this), text, token));
    }

    /** A function that other processes call. They receive what it throws; no caller in this process does. */
    private abstract static class Remote extends Target {
        @Override
        void keep(Throwable t) {}
    }

    /** Static, so that the target does not refer to the server and the garbage collector can find it. */
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
                    fn.call(List.copyOf(variables), given);
                } finally {
                    variables.forEach(Elements::end);
                }
            }
        };
    }

    /** Creates the threads that run closures, and listens. */
    public void start() {
        ask(handle -> {
            DistModule.dist_server_start(handle);
            serves = true;
            STARTED.add(this);
            return null;
        });
    }

    /** Returns the address for coordinators, "grpc://host:port", with the port that the system has chosen. */
    public String target() {
        return ask(handle -> Texts.of(DistModule.dist_server_target(handle)));
    }

    /**
     * Returns a trace of what the server has done, in Chrome's trace-event format (JSON), for Perfetto. A
     * worker has one row per thread, with a slice for each closure that contains slices for its calls to
     * parameter servers. A parameter server has one row, with a slice for each call. The traces of a job's
     * servers and coordinator can be merged.
     */
    public String traceJson() {
        return written(Text::write_server_trace);
    }

    /** Same as {@link #join(Duration)}, without a limit. */
    public void join() {
        join(Duration.ofNanos(-1));
    }

    /**
     * Waits until the coordinator ends the job, or until {@link #stop} or close() is called. An interrupt
     * ends the wait with CANCELLED, and the thread stays interrupted. The server listens until close().
     *
     * @param timeout zero means not to wait; a negative value means no limit
     * @throws DistException DEADLINE_EXCEEDED the timeout expired, or no coordinator connected within the
     *         start timeout. UNAVAILABLE the coordinator has been silent for two leases
     */
    public void join(Duration timeout) {
        join(timeout, null);
    }

    /**
     * Same as {@link #join(Duration)}.
     *
     * @param cancel also cancels the wait; may be null
     */
    public void join(Duration timeout, Cancel cancel) {
        long nanos = Durations.nanos(timeout, "timeout");
        try (Uses uses = new Uses()) {
            long handle = uses.of(this);
            Wait.run(uses, waits, cancel, own -> DistModule.dist_server_join(handle, nanos, own));
        }
    }

    /** Makes {@link #join} return. */
    public void stop() {
        ask(handle -> {
            DistModule.dist_server_stop(handle);
            return null;
        });
    }

    /**
     * Stops the server: its coordinator loses it, join() returns, and running closures are cancelled. Waits
     * until they have returned.
     *
     * @throws DistException FAILED_PRECONDITION called inside one of its functions
     */
    @Override
    public void close() {
        if (!leave() || !((UnlockedNative) owner).end(DistModule::dist_server_destroy)) {
            return;
        }
        STARTED.remove(this);
        super.close(); // the cleaner finds nothing left to do
    }

    /**
     * Lets calls of join() return, unless this thread runs one of the server's functions. Returns false if
     * the server is closed.
     */
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
