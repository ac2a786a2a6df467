// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModuleConstants;

/** How an assignment changes a variable. */
public enum Assign {
    /** It becomes the value. */
    SET(DistModuleConstants.DIST_ASSIGN),
    /** The value is added. */
    ADD(DistModuleConstants.DIST_ASSIGN_ADD),
    /** The value is subtracted. */
    SUB(DistModuleConstants.DIST_ASSIGN_SUB);

    final int code;

    Assign(int code) {
        this.code = code;
    }

    static Assign of(int code) {
        for (Assign each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new DistException(Status.INTERNAL, "Assign: libdist gave " + code);
    }
}
