// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModuleConstants;

/** What the bits of a sum depend on. */
public enum Numerics {
    /** The contributions in the order of replica ids. */
    ORDERED(DistModuleConstants.DIST_NUMERICS_ORDERED),
    /** The contributions alone, whoever brings them: added exactly, rounded once. */
    REPRODUCIBLE(DistModuleConstants.DIST_NUMERICS_REPRODUCIBLE);

    final int code;

    Numerics(int code) {
        this.code = code;
    }

    static Numerics of(int code) {
        for (Numerics each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new DistException(Status.INTERNAL, "Numerics: libdist gave " + code);
    }
}
