// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModuleConstants;

/** How values and variables are placed. */
public enum StrategyKind {
    /** R replicas; every variable has R equal copies. */
    MIRRORED(DistModuleConstants.DIST_STRATEGY_MIRRORED),
    /** One replica, for programs that run on one or many. */
    ONE_DEVICE(DistModuleConstants.DIST_STRATEGY_ONE_DEVICE),
    /** One replica: what a program has that never chose a strategy. */
    DEFAULT(DistModuleConstants.DIST_STRATEGY_DEFAULT),
    /** R replicas; every variable has one copy, which all of them read. */
    CENTRAL_STORAGE(DistModuleConstants.DIST_STRATEGY_CENTRAL_STORAGE),
    /** As MIRRORED, of replicas made of logical devices: see {@link StrategyOptions#deviceAssignment}. */
    MESH(DistModuleConstants.DIST_STRATEGY_MESH);

    final int code;

    StrategyKind(int code) {
        this.code = code;
    }

    static StrategyKind of(int code) {
        for (StrategyKind each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new DistException(Status.INTERNAL, "StrategyKind: libdist gave " + code);
    }
}
