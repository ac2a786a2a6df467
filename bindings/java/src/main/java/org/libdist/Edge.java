// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The content of a halo beyond the edge of the whole tensor; the elements of that dimension are 0 .. n-1. */
public enum Edge {
    /** Zeros. */
    ZERO(0x1800),
    /** From the other end: -1 is n-1. */
    WRAP(0x1801),
    /** The last element, repeated: -1 is 0. */
    CLAMP(0x1802),
    /** Mirrored at the last element: -1 is 1. */
    REFLECT(0x1803),
    /** Nothing: the result ends at the edge. */
    NONE(0x1804);

    final int code;

    Edge(int code) {
        this.code = code;
    }

    static Edge of(int code) {
        return switch (code) {
            case 0x1800 -> ZERO;
            case 0x1801 -> WRAP;
            case 0x1802 -> CLAMP;
            case 0x1803 -> REFLECT;
            case 0x1804 -> NONE;
            default -> throw new DistException(Status.INTERNAL, "Edge: libdist gave " + code);
        };
    }
}
