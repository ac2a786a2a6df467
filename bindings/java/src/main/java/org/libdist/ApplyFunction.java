// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Changes a parameter by its gradient. Called on several pieces at the same time; must not call libdist.
 */
@FunctionalInterface
public interface ApplyFunction {
    /** Changes the parameter, and the states, in place. */
    void apply(Block block);
}
