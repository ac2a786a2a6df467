// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

import org.libdist.internal.DistModule;

/** The operator of a reduction. */
public enum ReduceOp {
    /** Added, left to right by replica id. */
    SUM(0x101),
    /** The sum, divided by the number of terms or by the sum of the weights. */
    MEAN(0x102),
    /** The smallest; for booleans: and. */
    MIN(0x103),
    /** The largest; for booleans: or. */
    MAX(0x104),
    /** Multiplied. */
    PROD(0x105),
    /** Combined by the function of {@link CollectiveOptions#reducer}. */
    USER(0x106);

    final int code;

    ReduceOp(int code) {
        this.code = code;
    }

    static ReduceOp of(int code) {
        return switch (code) {
            case 0x101 -> SUM;
            case 0x102 -> MEAN;
            case 0x103 -> MIN;
            case 0x104 -> MAX;
            case 0x105 -> PROD;
            case 0x106 -> USER;
            default -> throw new DistException(Status.INTERNAL, "ReduceOp: libdist gave " + code);
        };
    }

    /** Returns TensorFlow's name of this constant; null if it has none. */
    public String tfName() {
        return Texts.of(DistModule.dist_enum_name(DistModule.DIST_ENUM_REDUCE_OP, code));
    }

    /**
     * Converts TensorFlow's name: "SUM" or "MEAN", in upper or lower case. Values outside runs have no other reductions.
     *
     * @throws DistException INVALID_ARGUMENT if the name is unknown; the message lists the known names
     */
    public static ReduceOp fromName(String name) {
        int[] out = new int[1];
        DistModule.dist_enum_from_name(DistModule.DIST_ENUM_VALUE_REDUCTION, Texts.bytes(name, "name"), out);
        return of(out[0]);
    }

    /**
     * The operator by which a variable of this aggregation is reduced.
     *
     * @throws DistException INVALID_ARGUMENT it is no reduction: NONE, ONLY_FIRST_REPLICA
     */
    public static ReduceOp fromAggregation(Aggregation aggregation) {
        int[] out = new int[1];
        DistModule.dist_reduce_op_from_aggregation(aggregation.code, out);
        return of(out[0]);
    }
}
