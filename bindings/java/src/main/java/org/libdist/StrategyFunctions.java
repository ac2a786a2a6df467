// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * A strategy of your own: its functions take the place of libdist's when values from outside runs are
 * reduced, broadcast and gathered. What replicas do among themselves stays libdist's.
 */
public interface StrategyFunctions extends CrossDeviceFunctions {
    /** Whether all replicas share one copy of each variable; else each has its own. Asked once. */
    default boolean sharesOneCopy() {
        return false;
    }
}
