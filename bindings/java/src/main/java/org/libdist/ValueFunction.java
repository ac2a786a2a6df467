// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Creates the component of one replica; see {@link Value#fromFunction}.
 *
 * @param <X> the type of exception that it may throw; inferred for lambdas
 */
@FunctionalInterface
public interface ValueFunction<X extends Exception> {
    /** Returns the component, or null for none. */
    Value make(int replica, int numReplicas) throws X;
}
