// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * A replica function on values, see {@link Strategy#runValues}.
 *
 * @param <X> what it may throw; of a lambda the compiler finds it out
 */
@FunctionalInterface
public interface ValuesFunction<X extends Exception> {
    /**
     * Gets this replica's components, which are closed when it returns; null: none were given. Returns a
     * result, or null.
     */
    Value call(Replica replica, Value args, Value kwargs) throws X;
}
