// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModuleConstants;

/** How rows change a variable: row indices[k] of it becomes op(that row, values[k]). */
public enum Scatter {
    /** Added. */
    ADD(DistModuleConstants.DIST_SCATTER_ADD),
    /** Subtracted. */
    SUB(DistModuleConstants.DIST_SCATTER_SUB),
    /** Replaced; of an index that comes twice the last counts. */
    UPDATE(DistModuleConstants.DIST_SCATTER_UPDATE),
    /** Multiplied. */
    MUL(DistModuleConstants.DIST_SCATTER_MUL),
    /** Divided. */
    DIV(DistModuleConstants.DIST_SCATTER_DIV),
    /** The smaller one. */
    MIN(DistModuleConstants.DIST_SCATTER_MIN),
    /** The larger one. */
    MAX(DistModuleConstants.DIST_SCATTER_MAX),
    /** UPDATE under leading dimensions that indices, values and variable share. */
    BATCH_UPDATE(DistModuleConstants.DIST_SCATTER_BATCH_UPDATE);

    final int code;

    Scatter(int code) {
        this.code = code;
    }

    static Scatter of(int code) {
        for (Scatter each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new DistException(Status.INTERNAL, "Scatter: libdist gave " + code);
    }
}
