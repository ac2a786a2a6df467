// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.dist_rpc_server_options;

/** Options of a server. Immutable: each method returns a new set of options. */
public final class RpcServerOptions {
    /** The default options. */
    public static final RpcServerOptions DEFAULT = new RpcServerOptions(0, 0);

    private final int numThreads;
    private final int maxQueued;

    private RpcServerOptions(int numThreads, int maxQueued) {
        this.numThreads = numThreads;
        this.maxQueued = maxQueued;
    }

    /** Sets the number of threads that run methods; 0 selects the default (4). */
    public RpcServerOptions numThreads(int numThreads) {
        return new RpcServerOptions(numThreads, maxQueued);
    }

    /**
     * Sets the maximum number of calls waiting for a thread; further ones fail with RESOURCE_EXHAUSTED. 0
     * selects the default (1024).
     */
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
