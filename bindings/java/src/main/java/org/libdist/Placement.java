// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The placement of library threads on CPUs. */
public enum Placement {
    /** The operating system decides. */
    FREE(0x900),
    /** Each thread on a core of its own. */
    CORES(0x901);

    final int code;

    Placement(int code) {
        this.code = code;
    }

    static Placement of(int code) {
        return switch (code) {
            case 0x900 -> FREE;
            case 0x901 -> CORES;
            default -> throw new DistException(Status.INTERNAL, "Placement: libdist gave " + code);
        };
    }
}
