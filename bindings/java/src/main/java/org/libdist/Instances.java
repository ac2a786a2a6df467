// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;

/** The replicas of a strategy, ready for requests until this is closed: {@link Strategy#openInstances}. */
public final class Instances implements AutoCloseable {
    private final Strategy strategy;

    Instances(Strategy strategy) {
        this.strategy = strategy;
    }

    /** The strategy whose replicas they are. */
    public Strategy strategy() {
        return strategy;
    }

    /**
     * Ends the serving, and waits for all that was accepted: {@link Strategy#closeInstances}. Nothing where
     * they, or the strategy, are closed.
     */
    @Override
    public void close() {
        if (!strategy.owner.isClosed()) {
            strategy.closeInstances(Duration.ofNanos(-1));
        }
    }

    /**
     * As {@link #close()}; requests that have not ended after {@code timeout} are cancelled.
     *
     * @param timeout zero: none; negative: no limit
     * @throws DistException DEADLINE_EXCEEDED requests were cancelled; the instances are closed
     */
    public void close(Duration timeout) {
        if (!strategy.owner.isClosed()) {
            strategy.closeInstances(timeout);
        }
    }
}
