// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Produces the elements of files. Called from one thread at a time, which may not be yours. It must not call
 * collectives.
 */
@FunctionalInterface
public interface FileSourceFunction {
    /** Returns element 0, 1, 2, ... of a file, given by its number and name; null ends the file. */
    Value call(long file, String name, long index) throws Exception;
}
