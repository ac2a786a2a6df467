// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.dist_variable_options;

/** What a variable is made to be. Immutable: each method gives another set of options. */
public final class VariableOptions {
    /** "Variable", AUTO, NONE; trainable unless it is synchronized on reading. */
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

    /** Its name, for messages and checkpoints. */
    public VariableOptions name(String name) {
        return new VariableOptions(name, aggregation, synchronization, trainable, partitions);
    }

    /** What assignments inside replicas do. */
    public VariableOptions aggregation(Aggregation aggregation) {
        return new VariableOptions(name, Objects.requireNonNull(aggregation, "aggregation"), synchronization,
                trainable, partitions);
    }

    /** When the copies are brought together. */
    public VariableOptions synchronization(Synchronization synchronization) {
        return new VariableOptions(name, aggregation,
                Objects.requireNonNull(synchronization, "synchronization"), trainable, partitions);
    }

    /** Whether it is for training to change. */
    public VariableOptions trainable(boolean trainable) {
        return new VariableOptions(name, aggregation, synchronization, trainable, partitions);
    }

    /** In how many pieces: more than one live on parameter servers, which libdist has not. */
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
