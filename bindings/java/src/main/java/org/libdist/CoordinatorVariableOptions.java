// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.dist_ps_variable_options;

/**
 * Options of a variable on parameter servers; see {@link Coordinator#createVariable}. Immutable: each method
 * returns a new set of options.
 */
public final class CoordinatorVariableOptions {
    /** The default options: reads are not cached, and the partitioner is used. */
    public static final CoordinatorVariableOptions DEFAULT = new CoordinatorVariableOptions(0, null, null);

    private final int maxStaleness;
    private final long[] partitions; // null: as the partitioner says
    private final String colocateWith; // null: in turn

    private CoordinatorVariableOptions(int maxStaleness, long[] partitions, String colocateWith) {
        this.maxStaleness = maxStaleness;
        this.partitions = partitions;
        this.colocateWith = colocateWith;
    }

    /** Sets the maximum age of a cached read, in closures of a worker; 0 means no caching. */
    public CoordinatorVariableOptions maxStaleness(int maxStaleness) {
        return new CoordinatorVariableOptions(maxStaleness, partitions, colocateWith);
    }

    /** Sets the number of parts per dimension, like a {@link PartitionFunction}. */
    public CoordinatorVariableOptions partitions(long... partitions) {
        return new CoordinatorVariableOptions(
                maxStaleness, Objects.requireNonNull(partitions, "partitions").clone(), colocateWith);
    }

    /**
     * Places the parts with those of another variable, for optimizer states. Without it, parts are placed in
     * turn.
     */
    public CoordinatorVariableOptions colocateWith(String name) {
        return new CoordinatorVariableOptions(maxStaleness, partitions, Objects.requireNonNull(name, "name"));
    }

    dist_ps_variable_options toNative(Uses uses) {
        dist_ps_variable_options options = new dist_ps_variable_options();
        uses.defer(options::delete);
        options.setMax_staleness(maxStaleness);
        if (partitions != null) {
            options.set_partitions(partitions, partitions.length);
        }
        if (colocateWith != null) {
            options.setColocate_with(Texts.bytes(colocateWith));
        }
        return options;
    }
}
