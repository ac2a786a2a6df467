// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The order of additions in a sum, which determines its bits. */
public enum Numerics {
    /** Added in the order of replica ids. */
    ORDERED(0x301),
    /** Added exactly and rounded once: independent of the order and of how replicas share the terms. */
    REPRODUCIBLE(0x302),
    /** Added in pairs, pairs of pairs and so on, by replica id: cheapest over many workers. */
    TREE(0x303);

    final int code;

    Numerics(int code) {
        this.code = code;
    }

    static Numerics of(int code) {
        return switch (code) {
            case 0x301 -> ORDERED;
            case 0x302 -> REPRODUCIBLE;
            case 0x303 -> TREE;
            default -> throw new DistException(Status.INTERNAL, "Numerics: libdist gave " + code);
        };
    }
}
