// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Updates a parameter from its gradient. Called on several blocks at the same time. It must not call libdist.
 */
@FunctionalInterface
public interface ApplyFunction {
    /** Updates the parameter and the states in place. */
    void call(Block block);
}
