// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Describes where the copies of a variable differ.
 *
 * @param numCopies number of copies compared; 0 if the variable is synchronized on reading, so that copies
 *         need not be equal
 * @param replica replica whose copy differs from most others; -1 if all are equal
 * @param expectedReplica first replica whose copy has the value of most; -1 if all are equal
 * @param element first element that differs, in row-major order; -1 if all are equal
 */
public record Drift(int numCopies, int replica, int expectedReplica, long element) {
    /** Returns whether all copies are equal. */
    public boolean isNone() {
        return replica < 0;
    }
}
