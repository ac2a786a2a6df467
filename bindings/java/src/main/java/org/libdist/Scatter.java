// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The operator of a scatter: row indices[k] of the variable becomes op(that row, values[k]). */
public enum Scatter {
    /** Added. */
    ADD(0xE01),
    /** Subtracted. */
    SUB(0xE02),
    /** The row is replaced; if an index occurs twice, the last one wins. */
    UPDATE(0xE03),
    /** Multiplied. */
    MUL(0xE04),
    /** Divided. */
    DIV(0xE05),
    /** The smaller one. */
    MIN(0xE06),
    /** The larger one. */
    MAX(0xE07),
    /** UPDATE below leading dimensions that indices, values and the variable share. */
    BATCH_UPDATE(0xE08);

    final int code;

    Scatter(int code) {
        this.code = code;
    }

    static Scatter of(int code) {
        return switch (code) {
            case 0xE01 -> ADD;
            case 0xE02 -> SUB;
            case 0xE03 -> UPDATE;
            case 0xE04 -> MUL;
            case 0xE05 -> DIV;
            case 0xE06 -> MIN;
            case 0xE07 -> MAX;
            case 0xE08 -> BATCH_UPDATE;
            default -> throw new DistException(Status.INTERNAL, "Scatter: libdist gave " + code);
        };
    }
}
