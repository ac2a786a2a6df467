// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;
import org.libdist.internal.DistModuleConstants;

/** When the copies of a variable are brought together. */
public enum Synchronization {
    /** The strategy's choice: on writing. */
    AUTO(DistModuleConstants.DIST_SYNCHRONIZATION_AUTO),
    /** Never; mirrored strategies refuse it. */
    NONE(DistModuleConstants.DIST_SYNCHRONIZATION_NONE),
    /** An assignment inside replicas is aggregated, and all copies stay equal. */
    ON_WRITE(DistModuleConstants.DIST_SYNCHRONIZATION_ON_WRITE),
    /** Each replica writes its own copy; a read from outside aggregates them. */
    ON_READ(DistModuleConstants.DIST_SYNCHRONIZATION_ON_READ);

    final int code;

    Synchronization(int code) {
        this.code = code;
    }

    static Synchronization of(int code) {
        for (Synchronization each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new DistException(Status.INTERNAL, "Synchronization: libdist gave " + code);
    }

    /** TensorFlow's name of it. */
    public String tfName() {
        return Texts.of(DistModule.dist_synchronization_name(code));
    }

    /**
     * The one of that name, in any case: for settings that are read from a file or a command line.
     *
     * @throws DistException INVALID_ARGUMENT another name; the message says which there are
     */
    public static Synchronization fromName(String name) {
        int[] out = new int[1];
        DistModule.dist_synchronization_from_name(Texts.bytes(name, "name"), out);
        return of(out[0]);
    }
}
