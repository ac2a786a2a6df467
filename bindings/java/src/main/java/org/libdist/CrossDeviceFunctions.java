// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;

/**
 * Functions of your own for reducing values from outside runs; what they throw comes out of the call that
 * needs them.
 */
public interface CrossDeviceFunctions {
    /** out = components[0] op ... op components[n-1]; out has the shape, and the dtype that MEAN gives. */
    void reduce(ReduceOp op, List<Elements> components, Elements out) throws Exception;

    /** Each of the copies = value. Where it is not overridden all replicas share the value. */
    default void broadcast(Elements value, List<Elements> copies) throws Exception {
        throw new UnsupportedOperationException("broadcast");
    }

    /** out = the components one after another along an axis. Where it is not overridden libdist does it. */
    default void gather(List<Elements> components, int axis, Elements out) throws Exception {
        throw new UnsupportedOperationException("gather");
    }
}
