// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;
import org.libdist.internal.dist_coordinator_options;

/**
 * The only coordinator of a strategy, with its partitioner. Each caller that asks for it becomes an owner.
 */
final class SharedCoordinator {
    private int holders;
    private long token; // of the partitioner; 0: none
    private volatile PartitionTarget partitioner;

    /** Creates the coordinator, or returns the existing one. */
    synchronized long hold(Uses uses, long strategy, CoordinatorOptions options) {
        dist_coordinator_options raw = options.toNative(uses);
        PartitionTarget target = null;
        long given = 0;
        if (holders == 0 && options.partitioner() != null) {
            target = new PartitionTarget(options.partitioner());
            given = Upcalls.register(target);
            raw.set_partitioner(given);
        }
        long[] out = new long[1];
        try {
            DistModule.dist_coordinator_create(strategy, raw, out);
        } catch (DistException e) {
            Upcalls.unregister(given);
            throw e;
        }
        if (holders++ == 0) {
            partitioner = target;
            token = given;
        }
        return out[0];
    }

    /** Removes an owner; the last one ends the coordinator. */
    synchronized void drop(long handle) {
        DistModule.dist_coordinator_destroy(handle);
        if (--holders == 0) {
            Upcalls.unregister(token);
            partitioner = null;
            token = 0;
        }
    }

    boolean isPartitioning() {
        PartitionTarget target = partitioner;
        return target != null && target.runs();
    }
}
