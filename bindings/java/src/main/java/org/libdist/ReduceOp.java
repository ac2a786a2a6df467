// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

import org.libdist.internal.DistModule;

/** The operator of a reduction. */
public enum ReduceOp {
    /** Added, left to right by replica id. */
    SUM(1),
    /** The sum, divided by how many there are, or by the weights. */
    MEAN(2),
    /** The smallest; of booleans: and. */
    MIN(3),
    /** The largest; of booleans: or. */
    MAX(4),
    /** Multiplied. */
    PROD(5),
    /** By the function of {@link CollectiveOptions#reducer}. */
    USER(6);

    final int code;

    ReduceOp(int code) {
        this.code = code;
    }

    static ReduceOp of(int code) {
        return switch (code) {
            case 1 -> SUM;
            case 2 -> MEAN;
            case 3 -> MIN;
            case 4 -> MAX;
            case 5 -> PROD;
            case 6 -> USER;
            default -> throw new DistException(Status.INTERNAL, "ReduceOp: libdist gave " + code);
        };
    }

    /** TensorFlow's name of it; null where it has none. */
    public String tfName() {
        return Texts.of(DistModule.dist_enum_name(DistModule.DIST_ENUM_REDUCE_OP, code));
    }

    /**
     * The one of that name, "SUM" or "MEAN" in any case: other operators are no reduction of values from outside.
     *
     * @throws DistException INVALID_ARGUMENT another name; the message says which there are
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
