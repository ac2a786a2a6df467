// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.dist_variable_options;

/** Options of a variable. Immutable: each method returns a new set of options. */
public final class VariableOptions {
    /** The default options: name "Variable", synchronization AUTO, aggregation NONE. */
    public static final VariableOptions DEFAULT =
            new VariableOptions(null, Aggregation.NONE, Synchronization.AUTO);

    private final String name;
    private final Aggregation aggregation;
    private final Synchronization synchronization;

    private VariableOptions(String name, Aggregation aggregation, Synchronization synchronization) {
        this.name = name;
        this.aggregation = aggregation;
        this.synchronization = synchronization;
    }

    /** Sets the name, for messages and checkpoints. */
    public VariableOptions name(String name) {
        return new VariableOptions(name, aggregation, synchronization);
    }

    /** Sets how values that replicas assign are combined. */
    public VariableOptions aggregation(Aggregation aggregation) {
        return new VariableOptions(name, Objects.requireNonNull(aggregation, "aggregation"), synchronization);
    }

    /** Sets when the copies are combined. */
    public VariableOptions synchronization(Synchronization synchronization) {
        return new VariableOptions(
                name, aggregation, Objects.requireNonNull(synchronization, "synchronization"));
    }

    /** @param initial the token of a function; 0: none */
    dist_variable_options toNative(Uses uses, long initial) {
        dist_variable_options options = new dist_variable_options();
        uses.defer(options::delete);
        options.setAggregation(aggregation.code);
        options.setSynchronization(synchronization.code);
        if (name != null) {
            options.setName(Texts.bytes(name, "name"));
        }
        if (initial != 0) {
            options.set_initial(initial);
        }
        return options;
    }
}
