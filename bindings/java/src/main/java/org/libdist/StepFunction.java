// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Processes one step of a {@link Batcher} on one instance. If it throws, all items of the batch fail with
 * that exception, except those for which {@link Batch#end} was called.
 *
 * @param <Q> the type of submitted requests
 * @param <R> the type of partial results
 */
@FunctionalInterface
public interface StepFunction<Q, R> {
    /**
     * Processes the items of the batch.
     *
     * @param batch valid until the function returns
     */
    void call(Replica replica, Batch<Q, R> batch) throws Exception;
}
