// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Changes one copy of a variable; see {@link Strategy#update}.
 *
 * @param <X> the type of exception that it may throw; inferred for lambdas
 */
@FunctionalInterface
public interface UpdateFunction<X extends Exception> {
    /**
     * Receives a copy and the arguments of that replica, which are closed when it returns; null if none were
     * given.
     */
    void update(Tensor copy, Value args) throws X;
}
