// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

import org.libdist.internal.DistModule;

/** The time at which the copies of a variable are combined (TensorFlow: VariableSynchronization). */
public enum Synchronization {
    /** The strategy decides: on writing. */
    AUTO(0xB00),
    /** Never; mirrored strategies refuse it. */
    NONE(0xB01),
    /** An assignment inside replicas is aggregated, and all copies stay equal. */
    ON_WRITE(0xB02),
    /** Each replica writes its own copy; a read from outside aggregates the copies. */
    ON_READ(0xB03);

    final int code;

    Synchronization(int code) {
        this.code = code;
    }

    static Synchronization of(int code) {
        return switch (code) {
            case 0xB00 -> AUTO;
            case 0xB01 -> NONE;
            case 0xB02 -> ON_WRITE;
            case 0xB03 -> ON_READ;
            default -> throw new DistException(Status.INTERNAL, "Synchronization: libdist gave " + code);
        };
    }

    /** Returns TensorFlow's name of this constant; null if it has none. */
    public String tfName() {
        return Texts.of(DistModule.dist_enum_name(DistModule.DIST_ENUM_SYNCHRONIZATION, code));
    }

    /**
     * Converts TensorFlow's name. Upper and lower case are equal. Use it for settings from files and command lines.
     *
     * @throws DistException INVALID_ARGUMENT if the name is unknown; the message lists the known names
     */
    public static Synchronization fromName(String name) {
        int[] out = new int[1];
        DistModule.dist_enum_from_name(DistModule.DIST_ENUM_SYNCHRONIZATION, Texts.bytes(name, "name"), out);
        return of(out[0]);
    }
}
