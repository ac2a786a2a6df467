// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * The elements of files. Called from one thread at a time, maybe not yours; must not call collectives.
 */
@FunctionalInterface
public interface FileSource {
    /** Element 0, 1, 2, ... of a file by its number and name; null is the file's end. */
    Value element(long file, String name, long index) throws Exception;
}
