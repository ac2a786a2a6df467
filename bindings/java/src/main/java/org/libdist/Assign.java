// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The way in which an assignment changes a variable. */
public enum Assign {
    /** It becomes the value. */
    SET(1),
    /** The value is added. */
    ADD(2),
    /** The value is subtracted. */
    SUB(3);

    final int code;

    Assign(int code) {
        this.code = code;
    }

    static Assign of(int code) {
        return switch (code) {
            case 1 -> SET;
            case 2 -> ADD;
            case 3 -> SUB;
            default -> throw new DistException(Status.INTERNAL, "Assign: libdist gave " + code);
        };
    }
}
