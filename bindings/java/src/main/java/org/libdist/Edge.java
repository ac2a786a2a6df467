// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModuleConstants;

/** What is beyond the edges of a tensor, see {@link Halo#edges}. */
public enum Edge {
    /** Zeros. */
    ZERO(DistModuleConstants.DIST_EDGE_ZERO),
    /** What the other end has: -1 is n-1. */
    WRAP(DistModuleConstants.DIST_EDGE_WRAP),
    /** The last element, again and again: -1 is 0. */
    CLAMP(DistModuleConstants.DIST_EDGE_CLAMP),
    /** The tensor mirrored at its last element: -1 is 1. */
    REFLECT(DistModuleConstants.DIST_EDGE_REFLECT),
    /** Nothing: there the result ends. */
    NONE(DistModuleConstants.DIST_EDGE_NONE);

    final int code;

    Edge(int code) {
        this.code = code;
    }
}
