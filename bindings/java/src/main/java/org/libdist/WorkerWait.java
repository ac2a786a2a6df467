// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/**
 * A call outside runs that may wait for other workers, and that an interrupt of its thread cancels. The
 * strategy is cancelled repeatedly until the call returns, because the call may not have reached its wait
 * yet.
 */
final class WorkerWait {
    private static final long AGAIN_MILLIS = 5;

    private final long strategy;
    private final Interrupts watch;
    private boolean over;

    /** @param strategy is there until {@link #end} */
    WorkerWait(long strategy) {
        this.strategy = strategy;
        watch = Interrupts.watch(thread -> {
            Thread canceller = new Thread(this::cancel, "dist-interrupt");
            canceller.setDaemon(true);
            canceller.start();
        });
    }

    synchronized void cancel() {
        try {
            while (!over) {
                DistModule.dist_strategy_cancel(strategy);
                wait(AGAIN_MILLIS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // by whom it does not belong to
        }
    }

    void end() {
        watch.end();
        synchronized (this) {
            over = true;
            notifyAll();
        }
    }
}
