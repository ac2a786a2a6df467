// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/** Runs a part of a loop. Called from several threads at the same time. It must not call collectives. */
@FunctionalInterface
public interface RangeFunction {
    /** Runs the iterations begin .. end - 1. */
    void call(long begin, long end);
}
