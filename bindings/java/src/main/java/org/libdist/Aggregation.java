// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;
import org.libdist.internal.DistModuleConstants;

/** What an assignment inside replicas does with the values that they give. */
public enum Aggregation {
    /** Each replica writes its own copy. */
    NONE(DistModuleConstants.DIST_AGGREGATION_NONE),
    /** Every copy gets their sum. */
    SUM(DistModuleConstants.DIST_AGGREGATION_SUM),
    /** Every copy gets their mean. */
    MEAN(DistModuleConstants.DIST_AGGREGATION_MEAN),
    /** Replica 0's value goes to all. */
    ONLY_FIRST_REPLICA(DistModuleConstants.DIST_AGGREGATION_ONLY_FIRST_REPLICA);

    final int code;

    Aggregation(int code) {
        this.code = code;
    }

    static Aggregation of(int code) {
        for (Aggregation each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new DistException(Status.INTERNAL, "Aggregation: libdist gave " + code);
    }

    /** TensorFlow's name of it. */
    public String tfName() {
        return Texts.of(DistModule.dist_aggregation_name(code));
    }

    /**
     * The one of that name, in any case: for settings that are read from a file or a command line.
     *
     * @throws DistException INVALID_ARGUMENT another name; the message says which there are
     */
    public static Aggregation fromName(String name) {
        int[] out = new int[1];
        DistModule.dist_aggregation_from_name(Texts.bytes(name, "name"), out);
        return of(out[0]);
    }
}
