// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The way in which a tensor is distributed over the logical devices of a replica. */
public enum PartitionKind {
    /** Each device has one tile. */
    SPLIT(0),
    /** One device has the whole tensor, the others have nothing. */
    ASSIGN(1),
    /** Each device has the whole tensor. */
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
