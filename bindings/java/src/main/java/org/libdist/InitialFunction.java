// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Gives a variable's first value, by {@link Value#createTensor} and its like.
 *
 * @param <X> what it may throw; of a lambda the compiler finds it out
 */
@FunctionalInterface
public interface InitialFunction<X extends Exception> {
    /** Returns the value. */
    Value make() throws X;
}
