// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/** What describes a cluster of processes. */
public final class ClusterResolver {
    private final Strategy strategy;

    ClusterResolver(Strategy strategy) {
        this.strategy = strategy;
    }

    /** The strategy that it is of. */
    public Strategy strategy() {
        return strategy;
    }
}
