// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Changes one copy of a variable, see {@link Strategy#update}.
 *
 * @param <X> what it may throw; of a lambda the compiler finds it out
 */
@FunctionalInterface
public interface UpdateFunction<X extends Exception> {
    /** Gets a copy and that replica's arguments, which are closed when it returns; null: none were given. */
    void update(Tensor copy, Value args) throws X;
}
