// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The way in which an assignment changes a variable. */
public enum Assign {
    /** It becomes the value. */
    SET(0xD01),
    /** The value is added. */
    ADD(0xD02),
    /** The value is subtracted. */
    SUB(0xD03);

    final int code;

    Assign(int code) {
        this.code = code;
    }

    static Assign of(int code) {
        return switch (code) {
            case 0xD01 -> SET;
            case 0xD02 -> ADD;
            case 0xD03 -> SUB;
            default -> throw new DistException(Status.INTERNAL, "Assign: libdist gave " + code);
        };
    }
}
