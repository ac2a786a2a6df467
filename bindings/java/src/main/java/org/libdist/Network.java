// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.DistModule;

/**
 * How workers that are strategies of this process reach each other, for tests and for trying things out: {@link
 * StrategyOptions#network} of each of them, with a cluster resolver that says which worker it is. Each is used on
 * a thread of its own.
 *
 * <p>A worker joins once, when its strategy is made; it has left when that has ended, and nobody can take its
 * place. All workers make the same calls in the same order: runs, and what reduces, gathers, creates variables
 * or reads one that is synchronized on reading. Those wait for the other workers, up to {@link
 * StrategyOptions#timeout}. close() gives the network up; strategies that are in it keep it.
 */
public final class Network extends NativeObject {
    /** Of that many workers. */
    public Network(int numWorkers) {
        this(numWorkers, NetworkOptions.DEFAULT);
    }

    /** Of that many workers. */
    public Network(int numWorkers, NetworkOptions options) {
        super(new Native("network", create(numWorkers, options), DistModule::dist_network_destroy));
    }

    private static long create(int numWorkers, NetworkOptions options) {
        Objects.requireNonNull(options, "options");
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_network_create(numWorkers, options.toNative(uses), out);
            return out[0];
        }
    }
}
