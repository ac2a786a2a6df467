// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/** Some of a strategy's replicas, which meet without the others: see {@link CollectiveOptions#group}. */
public final class Group extends NativeObject {
    private Group(Native owner) {
        super(owner);
    }

    /**
     * A group of some replicas; made, and closed, while no run is under way.
     *
     * @param replicaIds ascending: the rank in the group is the position
     */
    public static Group create(Strategy strategy, int... replicaIds) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_group_create(uses.of(strategy), replicaIds, replicaIds.length, out);
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
     * Ends the group, before its strategy is closed.
     *
     * @throws DistException FAILED_PRECONDITION a run is under way, or work of the group is left
     */
    @Override
    public void close() {
        super.close();
    }
}
