// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_rpc_call_options;

/**
 * Calls the methods of a server, {@link RpcServer}, of any process and language. Values that come back are the caller's;
 * nothing is a value of kind NONE. A method that fails is a DistException with the status and the message that it gave.
 * Any number of threads may call at the same time; an interrupt ends the call of its thread: CANCELLED, and the thread stays
 * interrupted.
 *
 * <pre>{@code
 * try (RpcClient client = new RpcClient("127.0.0.1:29600"); Value sum = client.call("add", a, b)) {
 *     use(sum.tensor());
 * }
 * }</pre>
 */
public final class RpcClient extends NativeObject {
    private final Wait.Calls waits = new Wait.Calls();

    /** Whose calls end after 600 s. */
    public RpcClient(String address) {
        this(address, RpcClientOptions.DEFAULT);
    }

    /** @param address the server's, which need not be there yet: calls wait for it, up to their time-out */
    public RpcClient(String address, RpcClientOptions options) {
        super(new Native("client", create(address, options), DistModule::dist_rpc_client_destroy));
    }

    private static long create(String address, RpcClientOptions options) {
        Objects.requireNonNull(options, "options");
        byte[] text = Texts.bytes(address, "address");
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_rpc_client_create(null, text, options.toNative(uses), out);
            return out[0];
        }
    }

    @FunctionalInterface
    private interface Call {
        void with(long client, dist_rpc_call_options options);
    }

    /** A call that waits for its result. */
    private void await(Uses uses, RpcCallOptions options, Call call) {
        long client = uses.of(this);
        Wait.run(uses, waits, options.cancel(), own -> call.with(client, options.toNative(uses, own)));
    }

    /** The arguments as one value, until the call is over. */
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

    /** As {@link #call(String, Value...)}, with options. */
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

    /** As {@link #call(String, Value...)}, without waiting: what the call comes to is in the remote value, errors too. */
    public RemoteValue begin(String method, Value... arguments) {
        return begin(method, RpcCallOptions.DEFAULT, arguments);
    }

    /** As {@link #begin(String, Value...)}, with options. */
    public RemoteValue begin(String method, RpcCallOptions options, Value... arguments) {
        byte[] name = Texts.bytes(method, "method");
        Objects.requireNonNull(options, "options");
        long[] out = new long[1];
        try (Uses uses = new Uses()) {
            long tuple = tuple(uses, arguments);
            DistModule.dist_rpc_begin(uses.of(this), name, tuple,
                    options.toNative(uses, uses.ofNullable(options.cancel())), out);
        }
        return new RemoteValue(out[0], this);
    }

    /** The names of the server's methods, sorted. */
    public List<String> methods() {
        return methods(RpcCallOptions.DEFAULT);
    }

    /** As {@link #methods()}, with options. */
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

    /** Ends it: calls that have no answer are CANCELLED; remote values stay readable. */
    @Override
    public void close() {
        waits.end("the client is closed");
        super.close();
    }
}
