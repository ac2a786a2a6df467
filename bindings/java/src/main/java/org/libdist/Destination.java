// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.libdist.internal.Destinations;

/** The place of the result of a reduction. A null destination means every replica. */
public final class Destination {
    private final Variable variable;
    private final Value value;
    private final String device;

    private Destination(Variable variable, Value value, String device) {
        this.variable = variable;
        this.value = value;
        this.device = device;
    }

    /** Returns the places of a variable's copies. */
    public static Destination of(Variable variable) {
        return new Destination(Objects.requireNonNull(variable, "variable"), null, null);
    }

    /** Returns the places of a value's components; a tensor is in one place. */
    public static Destination of(Value value) {
        return new Destination(null, Objects.requireNonNull(value, "value"), null);
    }

    /** Returns a device by name: "CPU:1", or longer; "replica:1" is the device of replica 1. */
    public static Destination device(String name) {
        return new Destination(null, null, Objects.requireNonNull(name, "name"));
    }

    static long toNative(Uses uses, Destination destination) {
        return destination == null ? 0 : toNative(uses, Arrays.asList(destination));
    }

    /** Returns 0 for null and for an empty list. */
    static long toNative(Uses uses, List<Destination> destinations) {
        if (destinations == null || destinations.isEmpty()) {
            return 0;
        }
        Destinations all = new Destinations();
        uses.defer(all::delete);
        for (Destination each : destinations) {
            all.add(uses.ofNullable(each.variable), uses.ofNullable(each.value), Texts.orNull(each.device));
        }
        return all.get();
    }
}
