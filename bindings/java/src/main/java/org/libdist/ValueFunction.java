// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Makes one replica's component, see {@link Value#fromFunction}.
 *
 * @param <X> what it may throw; of a lambda the compiler finds it out
 */
@FunctionalInterface
public interface ValueFunction<X extends Exception> {
    /** Returns the component, or null: nothing. */
    Value make(int replica, int numReplicas) throws X;
}
