// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModuleConstants;

/** How a tensor is divided over logical devices. */
public enum PartitionKind {
    /** Each has a tile of it. */
    SPLIT(DistModuleConstants.DIST_PARTITION_SPLIT),
    /** One has it all, the others nothing. */
    ASSIGN(DistModuleConstants.DIST_PARTITION_ASSIGN),
    /** Each has all of it. */
    REPLICATE(DistModuleConstants.DIST_PARTITION_REPLICATE);

    final int code;

    PartitionKind(int code) {
        this.code = code;
    }

    static PartitionKind of(int code) {
        for (PartitionKind each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new DistException(Status.INTERNAL, "PartitionKind: libdist gave " + code);
    }
}
