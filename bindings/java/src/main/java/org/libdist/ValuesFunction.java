// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * A replica function on values; see {@link Strategy#run}.
 *
 * @param <X> the type of exception that it may throw; inferred for lambdas
 */
@FunctionalInterface
public interface ValuesFunction<X extends Exception> {
    /**
     * Receives the components of this replica, which are closed when it returns; null if none were given.
     * Returns a result, or null.
     */
    Value call(Replica replica, Value args, Value kwargs) throws X;
}
