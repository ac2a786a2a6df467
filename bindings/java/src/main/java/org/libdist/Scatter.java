// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The operator of a scatter: row indices[k] of the variable becomes op(that row, values[k]). */
public enum Scatter {
    /** Added. */
    ADD(1),
    /** Subtracted. */
    SUB(2),
    /** The row is replaced; if an index occurs twice, the last one wins. */
    UPDATE(3),
    /** Multiplied. */
    MUL(4),
    /** Divided. */
    DIV(5),
    /** The smaller one. */
    MIN(6),
    /** The larger one. */
    MAX(7),
    /** UPDATE below leading dimensions that indices, values and the variable share. */
    BATCH_UPDATE(8);

    final int code;

    Scatter(int code) {
        this.code = code;
    }

    static Scatter of(int code) {
        return switch (code) {
            case 1 -> ADD;
            case 2 -> SUB;
            case 3 -> UPDATE;
            case 4 -> MUL;
            case 5 -> DIV;
            case 6 -> MIN;
            case 7 -> MAX;
            case 8 -> BATCH_UPDATE;
            default -> throw new DistException(Status.INTERNAL, "Scatter: libdist gave " + code);
        };
    }
}
