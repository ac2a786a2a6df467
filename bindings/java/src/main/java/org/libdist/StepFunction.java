// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * One step of a {@link Batcher}, on one instance. What it throws ends all the batch's items, but for those that
 * {@link Batch#end} has ended.
 *
 * @param <Q> what is submitted
 * @param <R> the partial results
 */
@FunctionalInterface
public interface StepFunction<Q, R> {
    /**
     * Answers the batch's items.
     *
     * @param batch valid until the function returns
     */
    void step(Replica replica, Batch<Q, R> batch) throws Exception;
}
