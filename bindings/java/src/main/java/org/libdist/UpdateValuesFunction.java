// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Changes one copy of a variable and may give a result, see {@link Strategy#updateValues}.
 *
 * @param <X> what it may throw; of a lambda the compiler finds it out
 */
@FunctionalInterface
public interface UpdateValuesFunction<X extends Exception> {
    /**
     * Gets that replica's arguments, which are closed when it returns; null: none were given. Returns a
     * result, or null.
     */
    Value update(UpdatePlace place, Value args, Value kwargs) throws X;
}
