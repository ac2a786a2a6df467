// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import org.libdist.internal.dist_rpc_call_options;

/** Options of a call. Immutable: each method returns a new set of options. */
public final class RpcCallOptions {
    /** The default options: the client's timeout. */
    public static final RpcCallOptions DEFAULT = new RpcCallOptions(0, null);

    private final long timeoutNanos;
    private final Cancel cancel; // null: none

    private RpcCallOptions(long timeoutNanos, Cancel cancel) {
        this.timeoutNanos = timeoutNanos;
        this.cancel = cancel;
    }

    /**
     * Sets the time limit from the call to its answer; zero selects the client's, and a negative value means
     * no limit.
     */
    public RpcCallOptions timeout(Duration timeout) {
        return new RpcCallOptions(Durations.nanos(timeout, "timeout"), cancel);
    }

    /** Sets an object that cancels this call. */
    public RpcCallOptions cancel(Cancel cancel) {
        return new RpcCallOptions(timeoutNanos, Objects.requireNonNull(cancel, "cancel"));
    }

    Cancel cancel() {
        return cancel;
    }

    /** @param cancel the call's own, or that of these options */
    dist_rpc_call_options toNative(Uses uses, long cancel) {
        dist_rpc_call_options options = new dist_rpc_call_options();
        uses.defer(options::delete);
        options.setTimeout_ns(timeoutNanos);
        options.setCancel(cancel);
        return options;
    }
}
