// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/**
 * A subset of a strategy's replicas, which runs collectives without the others; see {@link
 * CollectiveOptions#group}.
 */
public final class Group extends NativeObject {
    private final long handle;
    private final Strategy strategy; // that it belongs to; null: one of its own

    private Group(Native owner) {
        super(owner);
        handle = 0;
        strategy = null;
    }

    /** Wraps a group that belongs to a strategy and ends with it. */
    Group(long handle, Strategy strategy) {
        super(strategy);
        this.handle = handle;
        this.strategy = strategy;
    }

    @Override
    long acquire() {
        long own = super.acquire();
        return strategy == null ? own : handle;
    }

    /**
     * Creates a group of some replicas. Groups can be created and closed only while no run is in progress.
     *
     * @param replicaIds ids in ascending order; the rank in the group is the position in this list
     */
    public static Group create(Strategy strategy, int... replicaIds) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_group_create(uses.of(strategy, "strategy"), replicaIds, replicaIds.length, out);
            return new Group(strategy.dependent("group", out[0], DistModule::dist_group_destroy));
        }
    }

    /** Returns the number of replicas in the group. */
    public int size() {
        return askInt(DistModule::dist_group_size);
    }

    /** Returns the rank of a replica in the group; -1 if it is not a member. */
    public int rank(int replicaId) {
        return askInt(handle -> DistModule.dist_group_rank(handle, replicaId));
    }

    /**
     * Closes the group. Close it before its strategy. Does nothing for a group from {@link
     * Replica#deviceAxisGroup}.
     *
     * @throws DistException FAILED_PRECONDITION a run is in progress, or the group has unfinished work
     */
    @Override
    public void close() {
        super.close();
    }
}
