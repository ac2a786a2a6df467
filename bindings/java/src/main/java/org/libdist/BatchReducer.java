// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Takes what was made of all batches so far, and the next batch, see {@link Dataset#reduce}.
 *
 * @param <X> what it may throw; of a lambda the compiler finds it out
 */
@FunctionalInterface
public interface BatchReducer<X extends Exception> {
    /** Gets a state (null: none) and a batch, which are closed when it returns. Returns the next state. */
    Value reduce(Value state, Value batch) throws X;
}
