// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.libdist.internal.DistModule;

/**
 * Offers methods to other processes over gRPC, like tf.distribute.experimental.rpc. {@code libdist-grpc.so}
 * must be installed. Addresses other than loopback require TLS, or a secret and DIST_PLAINTEXT=1. The server
 * reads these settings from the environment: DIST_JOB_SECRET, DIST_TLS_CA, DIST_TLS_CERTIFICATE,
 * DIST_TLS_KEY, DIST_PLAINTEXT, DIST_LEASE_SECONDS and DIST_MODULE_FOLDER. Clients need the same secret and
 * the same lease. A message has at most 256 MiB.
 *
 * <pre>{@code
 * try (RpcServer server = RpcServer.create("127.0.0.1:29600")) {
 *     server.register("add", (context, arguments) -> sum(arguments));
 *     server.start();
 *     untilTheEnd();
 * }
 * }</pre>
 *
 * <p>A started server runs until close(), even if the program no longer refers to it.
 */
public final class RpcServer extends NativeObject {
    /** Keeps started servers alive. */
    private static final Set<RpcServer> STARTED = ConcurrentHashMap.newKeySet();

    private RpcServer(long handle) {
        super(new UnlockedNative("server", handle, DistModule::dist_rpc_server_destroy));
    }

    /** Creates a server with default options. */
    public static RpcServer create(String address) {
        return create(address, RpcServerOptions.DEFAULT);
    }

    /**
     * Creates a server. It does not listen before start().
     *
     * @param address "host:port" or "[v6]:port"; with port 0, the system chooses a port. If the host is a name other
     *     than localhost, the server listens on all interfaces
     */
    public static RpcServer create(String address, RpcServerOptions options) {
        Objects.requireNonNull(options, "options");
        byte[] text = Texts.bytes(address, "address");
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_rpc_server_create(null, text, options.toNative(uses), out);
            return new RpcServer(out[0]);
        }
    }

    /**
     * Offers a method. Call it before start().
     *
     * @param method a name of up to 255 bytes that does not begin with "dist."
     */
    public void register(String method, RpcFunction fn) {
        Objects.requireNonNull(fn, "fn");
        byte[] name = Texts.bytes(method, "method");
        Calls.<RuntimeException>keep(
                target(fn), (uses, token) -> DistModule.dist_rpc_server_register(uses.of(this), name, token));
    }

    /** Static, so that the target does not refer to the server and the garbage collector can find it. */
    private static Target target(RpcFunction fn) {
        return new Target() {
            @Override
            long method(String called, long cancel, long timeoutNanos, long args) throws Exception {
                RpcContext context = new RpcContext(called, cancel, timeoutNanos);
                try (Value given = Value.borrowed(args)) {
                    return Value.handedOver(fn.call(context, Value.positional(given)));
                } finally {
                    context.end();
                }
            }

            @Override
            void keep(Throwable t) {} // the client reads of it, and no caller here
        };
    }

    /** Creates the threads that run methods, and listens. */
    public void start() {
        ask(handle -> {
            DistModule.dist_rpc_server_start(handle);
            STARTED.add(this);
            return null;
        });
    }

    /** Returns the address for clients, "host:port", with the port that the system has chosen. */
    public String address() {
        return ask(handle -> Texts.of(DistModule.dist_rpc_server_address(handle)));
    }

    /**
     * Stops the server and waits until running methods have returned. New calls are rejected, calls that wait
     * for a thread fail with UNAVAILABLE, and running methods are cancelled.
     *
     * @throws DistException FAILED_PRECONDITION called inside one of its methods
     */
    @Override
    public void close() {
        if (!((UnlockedNative) owner).end(DistModule::dist_rpc_server_destroy)) {
            return;
        }
        STARTED.remove(this);
        super.close(); // the cleaner finds nothing left to do
    }
}
