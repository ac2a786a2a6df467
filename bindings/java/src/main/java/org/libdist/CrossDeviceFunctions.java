// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;

/**
 * Your own functions for reducing, broadcasting and gathering values outside runs. Exceptions that they throw
 * are rethrown by the call that uses them.
 */
public interface CrossDeviceFunctions {
    /**
     * Computes out = components[0] op ... op components[n-1]. {@code out} has the shape of the components,
     * and the dtype of their MEAN.
     */
    void reduce(ReduceOp op, List<Elements> components, Elements out) throws Exception;

    /** Copies value to each of the copies. If it is not overridden, all replicas share the value. */
    default void broadcast(Elements value, List<Elements> copies) throws Exception {
        throw new UnsupportedOperationException("broadcast");
    }

    /** Concatenates the components along an axis to {@code out}. If it is not overridden, libdist does it. */
    default void gather(List<Elements> components, int axis, Elements out) throws Exception {
        throw new UnsupportedOperationException("gather");
    }
}
