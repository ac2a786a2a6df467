// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.dist_variable_options;

/** Options of a variable. Immutable: each method returns a new set of options. */
public final class VariableOptions {
    /**
     * The default options: name "Variable", synchronization AUTO, aggregation NONE, and trainable unless it
     * is synchronized on reading.
     */
    public static final VariableOptions DEFAULT =
            new VariableOptions(null, Aggregation.NONE, Synchronization.AUTO, null, 0);

    private final String name;
    private final Aggregation aggregation;
    private final Synchronization synchronization;
    private final Boolean trainable;
    private final int partitions;

    private VariableOptions(String name, Aggregation aggregation, Synchronization synchronization,
            Boolean trainable, int partitions) {
        this.name = name;
        this.aggregation = aggregation;
        this.synchronization = synchronization;
        this.trainable = trainable;
        this.partitions = partitions;
    }

    /** Sets the name, for messages and checkpoints. */
    public VariableOptions name(String name) {
        return new VariableOptions(name, aggregation, synchronization, trainable, partitions);
    }

    /** Sets how values that replicas assign are combined. */
    public VariableOptions aggregation(Aggregation aggregation) {
        return new VariableOptions(name, Objects.requireNonNull(aggregation, "aggregation"), synchronization,
                trainable, partitions);
    }

    /** Sets when the copies are combined. */
    public VariableOptions synchronization(Synchronization synchronization) {
        return new VariableOptions(name, aggregation,
                Objects.requireNonNull(synchronization, "synchronization"), trainable, partitions);
    }

    /** Sets whether the variable is trainable. */
    public VariableOptions trainable(boolean trainable) {
        return new VariableOptions(name, aggregation, synchronization, trainable, partitions);
    }

    /**
     * Sets the number of pieces. More than one is not supported here: divided variables exist only on
     * parameter servers.
     */
    public VariableOptions partitions(int partitions) {
        return new VariableOptions(name, aggregation, synchronization, trainable, partitions);
    }

    /** @param initial the token of a function; 0: none */
    dist_variable_options toNative(Uses uses, long initial) {
        dist_variable_options options = new dist_variable_options();
        uses.defer(options::delete);
        options.setAggregation(aggregation.code);
        options.setSynchronization(synchronization.code);
        options.setTrainable(trainable == null ? 0 : trainable ? 1 : -1);
        options.setPartitions(partitions);
        if (name != null) {
            options.setName(Texts.bytes(name, "name"));
        }
        if (initial != 0) {
            options.set_initial(initial);
        }
        return options;
    }
}
