// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Creates a variable's initial value, for example with {@link Value#createTensor}.
 *
 * @param <X> the type of exception that it may throw; inferred for lambdas
 */
@FunctionalInterface
public interface InitialFunction<X extends Exception> {
    /** Returns the value. */
    Value call() throws X;
}
