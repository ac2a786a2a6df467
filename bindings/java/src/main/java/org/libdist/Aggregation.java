// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

import org.libdist.internal.DistModule;

/** The aggregation of the R values that replicas assign to a variable (TensorFlow: VariableAggregation). */
public enum Aggregation {
    /** Not combined: each replica writes its own copy. */
    NONE(0xC00),
    /** Every copy gets their sum. */
    SUM(0xC01),
    /** Every copy gets their mean. */
    MEAN(0xC02),
    /** All copies get replica 0's value. */
    ONLY_FIRST_REPLICA(0xC03);

    final int code;

    Aggregation(int code) {
        this.code = code;
    }

    static Aggregation of(int code) {
        return switch (code) {
            case 0xC00 -> NONE;
            case 0xC01 -> SUM;
            case 0xC02 -> MEAN;
            case 0xC03 -> ONLY_FIRST_REPLICA;
            default -> throw new DistException(Status.INTERNAL, "Aggregation: libdist gave " + code);
        };
    }

    /** Returns TensorFlow's name of this constant; null if it has none. */
    public String tfName() {
        return Texts.of(DistModule.dist_enum_name(DistModule.DIST_ENUM_AGGREGATION, code));
    }

    /**
     * Converts TensorFlow's name. Upper and lower case are equal. Use it for settings from files and command lines.
     *
     * @throws DistException INVALID_ARGUMENT if the name is unknown; the message lists the known names
     */
    public static Aggregation fromName(String name) {
        int[] out = new int[1];
        DistModule.dist_enum_from_name(DistModule.DIST_ENUM_AGGREGATION, Texts.bytes(name, "name"), out);
        return of(out[0]);
    }
}
