// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Runs once for all replicas, in cross-replica context, see {@link Replica#mergeCall}.
 *
 * @param <X> what it may throw; of a lambda the compiler finds it out
 */
@FunctionalInterface
public interface MergeFunction<X extends Exception> {
    /**
     * Gets the arguments of all replicas, merged, and closed when it returns; null: none were given. Returns
     * a result, or null.
     */
    Value merge(Strategy strategy, Value args) throws X;
}
