// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;
import org.libdist.internal.DistModuleConstants;

/** How contributions become one. */
public enum ReduceOp {
    /** Added, left to right by replica id. */
    SUM(DistModuleConstants.DIST_REDUCE_SUM),
    /** The sum, divided by how many there are, or by the weights. */
    MEAN(DistModuleConstants.DIST_REDUCE_MEAN),
    /** The smallest; of booleans: and. */
    MIN(DistModuleConstants.DIST_REDUCE_MIN),
    /** The largest; of booleans: or. */
    MAX(DistModuleConstants.DIST_REDUCE_MAX),
    /** Multiplied. */
    PROD(DistModuleConstants.DIST_REDUCE_PROD),
    /** By the function of {@link CollectiveOptions#reducer}. */
    USER(DistModuleConstants.DIST_REDUCE_USER);

    final int code;

    ReduceOp(int code) {
        this.code = code;
    }

    static ReduceOp of(int code) {
        for (ReduceOp each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new DistException(Status.INTERNAL, "ReduceOp: libdist gave " + code);
    }

    /** TensorFlow's name of it. */
    public String tfName() {
        return Texts.of(DistModule.dist_reduce_op_name(code));
    }

    /**
     * The reduction of values from outside that TensorFlow calls by this name, "SUM" or "MEAN" in any case.
     *
     * @throws DistException INVALID_ARGUMENT another name
     */
    public static ReduceOp fromName(String name) {
        int[] out = new int[1];
        DistModule.dist_reduce_op_from_name(Texts.bytes(name, "name"), out);
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
