// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Runs once on behalf of all replicas, in cross-replica context; see {@link Replica#mergeCall}.
 *
 * @param <X> the type of exception that it may throw; inferred for lambdas
 */
@FunctionalInterface
public interface MergeFunction<X extends Exception> {
    /**
     * Receives the merged arguments of all replicas, which are closed when it returns; null if none were
     * given. Returns a result, or null.
     */
    Value merge(Strategy strategy, Value args) throws X;
}
