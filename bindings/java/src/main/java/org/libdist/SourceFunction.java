// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Produces the elements of a dataset. Called from one thread at a time, which may not be yours. It must not
 * call collectives.
 */
@FunctionalInterface
public interface SourceFunction {
    /** Returns element 0, 1, 2, ... of each pass; null ends the pass. */
    Value call(long index) throws Exception;
}
