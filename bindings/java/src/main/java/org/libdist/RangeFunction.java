// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Takes a part of a loop. Called from several threads at once; must not call collectives.
 */
@FunctionalInterface
public interface RangeFunction {
    /** Iterations begin .. end - 1. */
    void run(long begin, long end);
}
