// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/** Into how many parts variables of parameter servers are divided, see {@link CoordinatorOptions#partitioner}. */
@FunctionalInterface
public interface PartitionFunction {
    /**
     * Says it for each dimension, as {@link Partitioners} does: the first at least 1 and all others 1. It is not called for
     * scalars, and must not call the coordinator. What it throws comes out of {@link Coordinator#createVariable} itself.
     */
    long[] partitions(DType dtype, long[] shape);
}
