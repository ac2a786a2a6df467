// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.dist_ps_variable_options;

/**
 * The rare choices of a variable on parameter servers, {@link Coordinator#createVariable}. Immutable: each method gives
 * another set of options.
 */
public final class PsVariableOptions {
    /** Nothing is cached, and the partitioner is asked. */
    public static final PsVariableOptions DEFAULT = new PsVariableOptions(0, null, null);

    private final int maxStaleness;
    private final long[] partitions; // null: as the partitioner says
    private final String colocateWith; // null: in turn

    private PsVariableOptions(int maxStaleness, long[] partitions, String colocateWith) {
        this.maxStaleness = maxStaleness;
        this.partitions = partitions;
        this.colocateWith = colocateWith;
    }

    /** How many of a worker's closures a cached read may be old; 0: nothing is cached. */
    public PsVariableOptions maxStaleness(int maxStaleness) {
        return new PsVariableOptions(maxStaleness, partitions, colocateWith);
    }

    /** Into how many parts each dimension is divided, as {@link PartitionFunction} says it. */
    public PsVariableOptions partitions(long... partitions) {
        return new PsVariableOptions(
                maxStaleness, Objects.requireNonNull(partitions, "partitions").clone(), colocateWith);
    }

    /** The name of a variable with whose parts its own lie, as an optimizer's state does; without it they go in turn. */
    public PsVariableOptions colocateWith(String name) {
        return new PsVariableOptions(maxStaleness, partitions, Objects.requireNonNull(name, "name"));
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
