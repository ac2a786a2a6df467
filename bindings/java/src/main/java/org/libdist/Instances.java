// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;

/**
 * The replicas of a strategy, ready for requests until this object is closed; see {@link
 * Strategy#openInstances}.
 */
public final class Instances implements AutoCloseable {
    private final Strategy strategy;

    Instances(Strategy strategy) {
        this.strategy = strategy;
    }

    /** Returns the strategy to which the instances belong. */
    public Strategy strategy() {
        return strategy;
    }

    /**
     * Stops serving and waits until all accepted requests have completed; see {@link
     * Strategy#closeInstances}. Does nothing if the instances or the strategy are closed.
     */
    @Override
    public void close() {
        if (!strategy.owner.isClosed()) {
            strategy.closeInstances(Duration.ofNanos(-1));
        }
    }

    /**
     * Same as {@link #close()}, but cancels requests that have not completed after {@code timeout}.
     *
     * @param timeout zero means not to wait; a negative value means no limit
     * @throws DistException DEADLINE_EXCEEDED requests were cancelled; the instances are closed
     */
    public void close(Duration timeout) {
        if (!strategy.owner.isClosed()) {
            strategy.closeInstances(timeout);
        }
    }
}
