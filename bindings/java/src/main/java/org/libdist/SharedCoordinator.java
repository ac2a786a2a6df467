// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/**
 * The only coordinator of a strategy, with its partitioner. Each caller that asks for it becomes an owner.
 */
final class SharedCoordinator {
    private int holders;
    private volatile Tokens tokens = new Tokens(); // of its options

    /** Creates the coordinator, or returns the existing one, which ignores the options. */
    synchronized long hold(Uses uses, long strategy, CoordinatorOptions options) {
        Tokens given = new Tokens();
        long[] out = new long[1];
        try {
            DistModule.dist_coordinator_create(strategy, options.toNative(uses, given), out);
        } finally {
            if (holders > 0 || out[0] == 0) {
                given.end();
            }
        }
        if (holders++ == 0) {
            tokens = given;
        }
        return out[0];
    }

    /** Removes an owner; the last one ends the coordinator. */
    synchronized void drop(long handle) {
        DistModule.dist_coordinator_destroy(handle);
        if (--holders == 0) {
            tokens.end();
            tokens = new Tokens();
        }
    }

    boolean isPartitioning() {
        return tokens.isPartitioning();
    }
}
