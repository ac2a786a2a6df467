// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.libdist.internal.DistModule;

/**
 * Offers methods to other processes, over gRPC: tf.distribute.experimental.rpc. What it reads of the environment, what goes
 * over and the limits are in libdist's rpc.h; {@code libdist-grpc.so} has to be installed.
 *
 * <pre>{@code
 * try (RpcServer server = new RpcServer("127.0.0.1:29600")) {
 *     server.register("add", (context, arguments) -> sum(arguments));
 *     server.start();
 *     untilTheEnd();
 * }
 * }</pre>
 *
 * One that was started goes on until close(), also where the program forgets it.
 */
public final class RpcServer extends NativeObject {
    /** That serve: the collector leaves them alone. */
    private static final Set<RpcServer> STARTED = ConcurrentHashMap.newKeySet();

    /** With the threads and the queue that libdist has by itself. */
    public RpcServer(String address) {
        this(address, RpcServerOptions.DEFAULT);
    }

    /** @param address "host:port" or "[v6]:port"; with port 0 the system chooses one */
    public RpcServer(String address, RpcServerOptions options) {
        super(new UnlockedNative("server", create(address, options), DistModule::dist_rpc_server_destroy));
    }

    private static long create(String address, RpcServerOptions options) {
        Objects.requireNonNull(options, "options");
        byte[] text = Texts.bytes(address, "address");
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_rpc_server_create(null, text, options.toNative(uses), out);
            return out[0];
        }
    }

    /**
     * Offers a method, before start().
     *
     * @param method a name of up to 255 bytes that does not begin with "dist."
     */
    public void register(String method, RpcMethod fn) {
        Objects.requireNonNull(fn, "fn");
        byte[] name = Texts.bytes(method, "method");
        Calls.<RuntimeException>keep(
                target(fn), (uses, token) -> DistModule.dist_rpc_server_register(uses.of(this), name, token));
    }

    /** It knows nothing of the server, which the collector may find. */
    private static Target target(RpcMethod fn) {
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

    /** Listens, and makes the threads that methods run on. */
    public void start() {
        ask(handle -> {
            DistModule.dist_rpc_server_start(handle);
            STARTED.add(this);
            return null;
        });
    }

    /** Where clients find it: "host:port", with the port that the system has chosen. */
    public String address() {
        return ask(handle -> Texts.of(DistModule.dist_rpc_server_address(handle)));
    }

    /**
     * Ends it: what comes is refused, calls that wait for a thread are UNAVAILABLE, methods that run find themselves
     * cancelled, and it waits until they have returned.
     *
     * @throws DistException FAILED_PRECONDITION inside one of its methods
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
