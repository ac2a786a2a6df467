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
     * Receives the merged arguments of all replicas, an empty list if there are none, and the named ones or null. They
     * are closed when it returns. Returns a result, or null.
     */
    Value call(Strategy strategy, Value args, Value kwargs) throws X;
}
