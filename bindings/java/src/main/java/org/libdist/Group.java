// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/** Some of a strategy's replicas, which meet without the others: see {@link CollectiveOptions#group}. */
public final class Group extends NativeObject {
    private final long handle;
    private final Strategy strategy; // that it belongs to; null: one of its own

    private Group(Native owner) {
        super(owner);
        handle = 0;
        strategy = null;
    }

    /** A strategy's own group: it ends with that. */
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
     * A group of some replicas; made, and closed, while no run is under way.
     *
     * @param replicaIds ascending: the rank in the group is the position
     */
    public static Group create(Strategy strategy, int... replicaIds) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_group_create(uses.of(strategy, "strategy"), replicaIds, replicaIds.length, out);
            return new Group(strategy.dependent("group", out[0], DistModule::dist_group_destroy));
        }
    }

    /** How many replicas it has. */
    public int size() {
        return askInt(DistModule::dist_group_size);
    }

    /** The rank of a replica in the group; -1 where it is no member. */
    public int rank(int replicaId) {
        return askInt(handle -> DistModule.dist_group_rank(handle, replicaId));
    }

    /**
     * Ends the group, before its strategy is closed; nothing on {@link Replica#deviceAxisGroup}'s.
     *
     * @throws DistException FAILED_PRECONDITION a run is under way, or work of the group is left
     */
    @Override
    public void close() {
        super.close();
    }
}
