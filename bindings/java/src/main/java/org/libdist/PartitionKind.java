// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** What the logical devices of a replica have of a tensor. */
public enum PartitionKind {
    /** Each a tile of it. */
    SPLIT(0),
    /** One has it all, the others nothing. */
    ASSIGN(1),
    /** Each has all of it. */
    REPLICATE(2);

    final int code;

    PartitionKind(int code) {
        this.code = code;
    }

    static PartitionKind of(int code) {
        return switch (code) {
            case 0 -> SPLIT;
            case 1 -> ASSIGN;
            case 2 -> REPLICATE;
            default -> throw new DistException(Status.INTERNAL, "PartitionKind: libdist gave " + code);
        };
    }
}
