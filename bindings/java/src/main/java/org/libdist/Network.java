// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.DistModule;

/**
 * Connects workers that are strategies of this process, for tests and experiments. Set it in {@link
 * StrategyOptions#network} of each worker, together with a cluster resolver that states which worker it is.
 * Use each worker on a thread of its own.
 *
 * <p>A worker joins the network once, when its strategy is created, and leaves it when the strategy is
 * closed. Its place is not reused. All workers must make the same calls in the same order: runs, and calls
 * that reduce, gather, create variables or read variables that are synchronized on reading. These calls wait
 * for the other workers, up to {@link StrategyOptions#timeout}. close() releases the network; strategies that
 * use it keep it.
 */
public final class Network extends NativeObject {
    private Network(long handle) {
        super(new Native("network", handle, DistModule::dist_network_destroy));
    }

    /** Creates a network for the given number of workers. */
    public static Network create(int numWorkers) {
        return create(numWorkers, NetworkOptions.DEFAULT);
    }

    /** Creates a network for the given number of workers, with options. */
    public static Network create(int numWorkers, NetworkOptions options) {
        Objects.requireNonNull(options, "options");
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_network_create(numWorkers, options.toNative(uses), out);
            return new Network(out[0]);
        }
    }
}
