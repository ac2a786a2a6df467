// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import org.libdist.internal.dist_rpc_client_options;

/** Options of a client. Immutable: each method returns a new set of options. */
public final class RpcClientOptions {
    /** The default options. */
    public static final RpcClientOptions DEFAULT = new RpcClientOptions(0);

    private final long timeoutNanos;

    private RpcClientOptions(long timeoutNanos) {
        this.timeoutNanos = timeoutNanos;
    }

    /**
     * Sets the timeout of calls without their own; zero selects the default (600 s), and a negative value
     * means no limit.
     */
    public RpcClientOptions timeout(Duration timeout) {
        return new RpcClientOptions(Durations.nanos(timeout, "timeout"));
    }

    dist_rpc_client_options toNative(Uses uses) {
        dist_rpc_client_options options = new dist_rpc_client_options();
        uses.defer(options::delete);
        options.setTimeout_ns(timeoutNanos);
        return options;
    }
}
