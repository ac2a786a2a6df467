// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModuleConstants;

/** Where a scan begins. */
public enum ScanKind {
    /** Replica r's own contribution is in its result. */
    INCLUSIVE(DistModuleConstants.DIST_SCAN_INCLUSIVE),
    /** Only those of replicas 0 .. r-1 are. */
    EXCLUSIVE(DistModuleConstants.DIST_SCAN_EXCLUSIVE);

    final int code;

    ScanKind(int code) {
        this.code = code;
    }

    static ScanKind of(int code) {
        for (ScanKind each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new DistException(Status.INTERNAL, "ScanKind: libdist gave " + code);
    }
}
