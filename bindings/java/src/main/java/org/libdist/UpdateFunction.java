// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Changes one copy of a variable and may return a result; see {@link Variable#update}.
 *
 * @param <X> the type of exception that it may throw; inferred for lambdas
 */
@FunctionalInterface
public interface UpdateFunction<X extends Exception> {
    /**
     * Receives the arguments of that replica, which are closed when it returns; null if none were given.
     * Returns a result, or null.
     */
    Value call(UpdatePlace place, Value args, Value kwargs) throws X;
}
