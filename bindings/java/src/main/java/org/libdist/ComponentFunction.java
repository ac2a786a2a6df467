// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Creates the component of one replica; see {@link Value#fromFunction}.
 *
 * @param <X> the type of exception that it may throw; inferred for lambdas
 */
@FunctionalInterface
public interface ComponentFunction<X extends Exception> {
    /** Returns the component, or null for none. */
    Value call(int replica, int numReplicas) throws X;
}
