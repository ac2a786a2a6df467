// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The content of a halo beyond the edge of the whole tensor; the elements of that dimension are 0 .. n-1. */
public enum Edge {
    /** Zeros. */
    ZERO(0),
    /** From the other end: -1 is n-1. */
    WRAP(1),
    /** The last element, repeated: -1 is 0. */
    CLAMP(2),
    /** Mirrored at the last element: -1 is 1. */
    REFLECT(3),
    /** Nothing: the result ends at the edge. */
    NONE(4);

    final int code;

    Edge(int code) {
        this.code = code;
    }

    static Edge of(int code) {
        return switch (code) {
            case 0 -> ZERO;
            case 1 -> WRAP;
            case 2 -> CLAMP;
            case 3 -> REFLECT;
            case 4 -> NONE;
            default -> throw new DistException(Status.INTERNAL, "Edge: libdist gave " + code);
        };
    }
}
