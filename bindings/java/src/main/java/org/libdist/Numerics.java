// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** What the bits of a sum depend on. */
public enum Numerics {
    /** The contributions in the order of replica ids. */
    ORDERED(0),
    /** The contributions alone, whoever brings them: added exactly, rounded once. */
    REPRODUCIBLE(1),
    /** As ORDERED, but in pairs, pairs of pairs and so on: what costs least over many workers. */
    TREE(2);

    final int code;

    Numerics(int code) {
        this.code = code;
    }

    static Numerics of(int code) {
        return switch (code) {
            case 0 -> ORDERED;
            case 1 -> REPRODUCIBLE;
            case 2 -> TREE;
            default -> throw new DistException(Status.INTERNAL, "Numerics: libdist gave " + code);
        };
    }
}
