// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Determines into how many parts variables on parameter servers are divided; see {@link
 * CoordinatorOptions#partitioner}.
 */
@FunctionalInterface
public interface PartitionFunction {
    /**
     * Returns the number of parts of each dimension, for example computed by {@link Partitioners}: at least 1
     * for the first dimension, and 1 for the others. It is not called for scalars, and must not call the
     * coordinator. Exceptions that it throws are rethrown unchanged by {@link Coordinator#createVariable}.
     */
    long[] call(DType dtype, long[] shape);
}
