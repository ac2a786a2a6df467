// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Where the copies of a variable are no longer equal.
 *
 * @param numCopies that were compared; 0: the variable is synchronized on reading, its copies need not be
 *         equal
 * @param replica whose copy differs from most others'; -1: all are equal
 * @param expectedReplica the first whose copy has what most have; -1: all are equal
 * @param element the first that differs, counted row-major; -1: all are equal
 */
public record Drift(int numCopies, int replica, int expectedReplica, long element) {
    /** Whether all copies are equal. */
    public boolean none() {
        return replica < 0;
    }
}
