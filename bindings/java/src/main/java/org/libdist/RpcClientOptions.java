// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import org.libdist.internal.dist_rpc_client_options;

/** The rare choices of a client. Immutable: each method gives another set of options. */
public final class RpcClientOptions {
    /** Those of libdist. */
    public static final RpcClientOptions DEFAULT = new RpcClientOptions(0);

    private final long timeoutNanos;

    private RpcClientOptions(long timeoutNanos) {
        this.timeoutNanos = timeoutNanos;
    }

    /** Of calls that have none of their own; zero: 600 s; negative: no limit. */
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
