// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The way in which a tensor is distributed over the logical devices of a replica. */
public enum PartitionKind {
    /** Each device has one tile. */
    SPLIT(0x1700),
    /** One device has the whole tensor, the others have nothing. */
    ASSIGN(0x1701),
    /** Each device has the whole tensor. */
    REPLICATE(0x1702);

    final int code;

    PartitionKind(int code) {
        this.code = code;
    }

    static PartitionKind of(int code) {
        return switch (code) {
            case 0x1700 -> SPLIT;
            case 0x1701 -> ASSIGN;
            case 0x1702 -> REPLICATE;
            default -> throw new DistException(Status.INTERNAL, "PartitionKind: libdist gave " + code);
        };
    }
}
