// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.LongConsumer;

/**
 * A strategy's handle. The collector may find groups and plans in any order: the strategy goes after the
 * last of them.
 */
final class StrategyLife extends Native {
    private final Queue<Native> uncollected = new ConcurrentLinkedQueue<>();
    private int dependents;

    StrategyLife(long handle, LongConsumer destroy) {
        super("strategy", handle, destroy);
    }

    @Override
    boolean isIdle() {
        return super.isIdle() && dependents == 0;
    }

    /** The life of something that has to end before the strategy. */
    Native dependent(String what, long handle, LongConsumer destroy) {
        synchronized (this) {
            dependents++;
        }
        return new Native(what, handle, h -> {
            destroy.accept(h);
            synchronized (this) {
                dependents--;
                endIfClosed();
            }
        }) {
            @Override
            void close() {
                closeUnused("the " + what + " is in use: close it while no run is under way");
            }

            @Override
            void collect() {
                try {
                    close();
                } catch (DistException e) { // a run is under way, or a plan of the group's is left
                    uncollected.add(this);
                    return;
                }
                collectRest();
            }
        };
    }

    /** Ends what could not be ended before. */
    void collectRest() {
        for (int n = uncollected.size(); n > 0; n--) {
            Native next = uncollected.poll();
            if (next != null) {
                next.collect();
            }
        }
    }

    /** What the user's close() does: whether groups or plans are left libdist knows. */
    void closeUnused() {
        collectRest();
        closeUnused("a run is under way: close the strategy after run() has returned");
    }
}
