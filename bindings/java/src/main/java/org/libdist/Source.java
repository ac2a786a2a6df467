// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * The elements of a dataset. Called from one thread at a time, maybe not yours; must not call collectives.
 */
@FunctionalInterface
public interface Source {
    /** Element 0, 1, 2, ... of each pass; null ends the pass. */
    Value element(long index) throws Exception;
}
