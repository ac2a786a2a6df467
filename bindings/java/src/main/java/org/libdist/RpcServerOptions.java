// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.dist_rpc_server_options;

/** The rare choices of a server. Immutable: each method gives another set of options. */
public final class RpcServerOptions {
    /** Those of libdist. */
    public static final RpcServerOptions DEFAULT = new RpcServerOptions(0, 0);

    private final int numThreads;
    private final int maxQueued;

    private RpcServerOptions(int numThreads, int maxQueued) {
        this.numThreads = numThreads;
        this.maxQueued = maxQueued;
    }

    /** On how many threads methods run; 0: 4. */
    public RpcServerOptions numThreads(int numThreads) {
        return new RpcServerOptions(numThreads, maxQueued);
    }

    /** How many calls may wait for one of them; beyond it a call is RESOURCE_EXHAUSTED; 0: 1,024. */
    public RpcServerOptions maxQueued(int maxQueued) {
        return new RpcServerOptions(numThreads, maxQueued);
    }

    dist_rpc_server_options toNative(Uses uses) {
        dist_rpc_server_options options = new dist_rpc_server_options();
        uses.defer(options::delete);
        options.setNum_threads(numThreads);
        options.setMax_queued(maxQueued);
        return options;
    }
}
