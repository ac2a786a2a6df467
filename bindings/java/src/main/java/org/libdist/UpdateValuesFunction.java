// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Changes one copy of a variable and may return a result; see {@link Strategy#updateValues}.
 *
 * @param <X> the type of exception that it may throw; inferred for lambdas
 */
@FunctionalInterface
public interface UpdateValuesFunction<X extends Exception> {
    /**
     * Receives the arguments of that replica, which are closed when it returns; null if none were given.
     * Returns a result, or null.
     */
    Value update(UpdatePlace place, Value args, Value kwargs) throws X;
}
