// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_rpc_call_options;

/**
 * Calls the methods of one {@link RpcServer}, which may run in another process and be written in another
 * language. The caller owns the values that calls return; if a method returns no result, the value is of kind
 * NONE. If a method fails, the call throws a DistException with the status and the message that the method
 * gave. Several threads may use a client at the same time. Interrupting a thread cancels its call with
 * CANCELLED, and the thread stays interrupted.
 *
 * <pre>{@code
 * try (RpcClient client = RpcClient.create("127.0.0.1:29600"); Value sum = client.call("add", a, b)) {
 *     use(sum.tensor());
 * }
 * }</pre>
 */
public final class RpcClient extends NativeObject {
    private final Wait.Calls waits = new Wait.Calls();

    private RpcClient(long handle) {
        super(new Native("client", handle, DistModule::dist_rpc_client_destroy));
    }

    /** Creates a client whose calls time out after 600 s. */
    public static RpcClient create(String address) {
        return create(address, RpcClientOptions.DEFAULT);
    }

    /**
     * Creates a client of a server.
     *
     * @param address the address of the server, which need not exist yet: calls wait for it, up to their
     *         timeout
     */
    public static RpcClient create(String address, RpcClientOptions options) {
        Objects.requireNonNull(options, "options");
        byte[] text = Texts.bytes(address, "address");
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_rpc_client_create(null, text, options.toNative(uses), out);
            return new RpcClient(out[0]);
        }
    }

    @FunctionalInterface
    private interface Call {
        void with(long client, dist_rpc_call_options options);
    }

    /** Makes a call that waits for its result. */
    private void await(Uses uses, RpcCallOptions options, Call call) {
        long client = uses.of(this);
        Wait.run(uses, waits, options.cancel, own -> call.with(client, options.toNative(uses, own)));
    }

    /** Returns the arguments as one value, until the call has returned. */
    private static long tuple(Uses uses, Value[] arguments) {
        List<Value> items = Arrays.asList(Objects.requireNonNull(arguments, "arguments"));
        long[] out = new long[1];
        DistModule.rpc_arguments(uses.all(items, "arguments"), items.size(), out);
        uses.defer(() -> DistModule.dist_value_release(out[0]));
        return out[0];
    }

    /** Calls a method with positional arguments and waits for its result. */
    public Value call(String method, Value... arguments) {
        return call(method, RpcCallOptions.DEFAULT, arguments);
    }

    /** Same as {@link #call(String, Value...)}, with options. */
    public Value call(String method, RpcCallOptions options, Value... arguments) {
        byte[] name = Texts.bytes(method, "method");
        Objects.requireNonNull(options, "options");
        long[] out = new long[1];
        try (Uses uses = new Uses()) {
            long tuple = tuple(uses, arguments);
            await(uses, options, (client, raw) -> DistModule.dist_rpc_call(client, name, tuple, raw, out));
        }
        return Value.taken(out[0]);
    }

    /**
     * Starts a call like {@link #call(String, Value...)} without waiting. The remote value receives the
     * result later, including errors.
     */
    public RemoteValue begin(String method, Value... arguments) {
        return begin(method, RpcCallOptions.DEFAULT, arguments);
    }

    /** Same as {@link #begin(String, Value...)}, with options. */
    public RemoteValue begin(String method, RpcCallOptions options, Value... arguments) {
        byte[] name = Texts.bytes(method, "method");
        Objects.requireNonNull(options, "options");
        long[] out = new long[1];
        try (Uses uses = new Uses()) {
            long tuple = tuple(uses, arguments);
            DistModule.dist_rpc_begin(uses.of(this), name, tuple,
                    options.toNative(uses, uses.ofNullable(options.cancel)), out);
        }
        return new RemoteValue(out[0], this);
    }

    /** Returns the names of the server's methods, sorted. */
    public List<String> methods() {
        return methods(RpcCallOptions.DEFAULT);
    }

    /** Same as {@link #methods()}, with options. */
    public List<String> methods(RpcCallOptions options) {
        Objects.requireNonNull(options, "options");
        long[] out = new long[1];
        try (Uses uses = new Uses()) {
            await(uses, options, (client, raw) -> DistModule.dist_rpc_client_methods(client, raw, out));
        }
        try (Value names = Value.taken(out[0])) {
            return names.items().stream().map(Value::text).toList();
        }
    }

    /** Closes the client. Calls without an answer fail with CANCELLED; remote values stay readable. */
    @Override
    public void close() {
        waits.end("the client is closed");
        super.close();
    }
}
