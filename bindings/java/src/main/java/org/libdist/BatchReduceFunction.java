// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Combines the result for all previous batches with the next batch; see {@link Dataset#reduce}.
 *
 * @param <X> the type of exception that it may throw; inferred for lambdas
 */
@FunctionalInterface
public interface BatchReduceFunction<X extends Exception> {
    /**
     * Receives a state, which is null if there is none, and a batch; both are closed when it returns. Returns
     * the next state.
     */
    Value call(Value state, Value batch) throws X;
}
