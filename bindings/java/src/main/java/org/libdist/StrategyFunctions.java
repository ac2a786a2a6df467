// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * A strategy of your own: its functions replace those of libdist when values outside runs are reduced,
 * broadcast and gathered. Collectives between replicas are not affected.
 */
public interface StrategyFunctions extends CrossDeviceFunctions {
    /**
     * Returns whether all replicas share one copy of each variable; otherwise each has its own. Called once.
     */
    default boolean sharesOneCopy() {
        return false;
    }
}
