// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongConsumer;
import org.libdist.internal.DistModule;

/**
 * The handle of a strategy. The garbage collector may find groups and plans in any order, so the strategy is
 * destroyed after the last of them.
 */
final class StrategyLife extends Native {
    private static final long SECOND_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private final Queue<Native> uncollected = new ConcurrentLinkedQueue<>();
    private final Set<Native> dependents = Collections.newSetFromMap(new IdentityHashMap<>());
    private int runs; // of its users those that a shutdown ends
    private final AtomicReference<RunSlot> spare = new AtomicReference<>(); // for the next run; null: none
    private volatile boolean ended; // it is destroyed: there is no next run
    private volatile boolean shuttingDown;
    private volatile boolean shutDown;

    StrategyLife(long handle, LongConsumer destroy) {
        super("strategy", handle, destroy);
    }

    @Override
    boolean isIdle() {
        return super.isIdle() && !ended && !shuttingDown && (shutDown || dependents.isEmpty());
    }

    /** Returns whether a call uses the strategy, or it is closed. */
    synchronized boolean isUsed() {
        return users() > 0 || isClosed();
    }

    /** Returns the handle for a run. */
    synchronized long comes() {
        long handle = acquire();
        runs++;
        return handle;
    }

    /** Called when the run has ended; ends its use of the strategy. */
    synchronized void leaves() {
        runs--;
        release();
    }

    RunSlot takeSlot() {
        RunSlot slot = spare.get() == null ? null : spare.getAndSet(null);
        return slot == null ? new RunSlot() : slot;
    }

    /** @param reusable whether no function can use it any more, and it has not been signalled */
    void giveSlot(RunSlot slot, boolean reusable) {
        slot.end();
        if (!reusable || !spare.compareAndSet(null, slot)) {
            slot.destroy();
        } else if (ended) {
            endSlot();
        }
    }

    private void endSlot() {
        ended = true;
        RunSlot slot = spare.getAndSet(null);
        if (slot != null) {
            slot.destroy();
        }
    }

    @Override
    void destroyed() {
        endSlot();
    }

    /**
     * Returns the handle of an object that must be destroyed before the strategy; a shutdown destroys it too.
     */
    Native dependent(String what, long handle, LongConsumer destroy) {
        Native dependent = new Native(what, handle, destroy) {
            @Override
            void destroyed() {
                synchronized (StrategyLife.this) {
                    dependents.remove(this);
                    StrategyLife.this.endIfClosed();
                }
            }

            @Override
            boolean isTaken() {
                return (shuttingDown || shutDown) && what.equals("group");
            }

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
        synchronized (this) {
            dependents.add(dependent);
        }
        return dependent;
    }

    /** Registers an object that must be destroyed before the strategy. */
    synchronized void outlives(Native other) {
        dependents.add(other);
    }

    /** Called when such an object has been destroyed. */
    synchronized void goesWithout(Native other) {
        dependents.remove(other);
        endIfClosed();
    }

    /** Destroys what could not be destroyed before. */
    void collectRest() {
        for (int n = uncollected.size(); n > 0; n--) {
            Native next = uncollected.poll();
            if (next != null) {
                next.collect();
            }
        }
    }

    /** Implements close(). libdist checks whether groups or plans still exist. */
    void closeUnused() {
        collectRest();
        closeUnused("a run or a request is under way: close the strategy after run() has returned");
    }

    /**
     * Implements close(Duration).
     *
     * @param hasPeers whether calls may wait for other workers
     */
    void shutDown(long timeoutNanos, boolean hasPeers) {
        long begun = System.nanoTime();
        synchronized (this) {
            if (!refuse(true)) {
                return;
            }
            shuttingDown = true; // a call that ends later does not destroy it
            if (!awaitOthers(timeoutNanos, hasPeers)) { // they may use the handle for as long as they like
                shuttingDown = false;
                endWhenUnused();
                throw new DistException(Status.DEADLINE_EXCEEDED,
                        "the strategy is closed, but " + (users() - runs)
                                + " calls of its methods by other threads have not returned; it ends when they have");
            }
        }
        long left = timeoutNanos < 0 ? -1 : Math.max(timeoutNanos - (System.nanoTime() - begun), 0);
        try {
            DistModule.dist_strategy_shutdown(handle(), left);
        } catch (DistException e) {
            if (e.status() != Status.DEADLINE_EXCEEDED) {
                synchronized (this) {
                    shuttingDown = false;
                    refuse(false);
                }
                throw e;
            }
            endShutDown();
            throw e;
        }
        endShutDown();
    }

    /**
     * Returns whether all users except runs have finished in time. Requires this object's lock, which is
     * released while waiting.
     */
    private boolean awaitOthers(long timeoutNanos, boolean hasPeers) {
        long deadline = System.nanoTime() + timeoutNanos;
        boolean interrupted = false;
        while (users() > runs) {
            long left = timeoutNanos < 0 ? Long.MAX_VALUE : deadline - System.nanoTime();
            if (left <= 0) {
                break;
            }
            if (hasPeers) { // again, as a call may only be on its way to its wait
                cancel();
            }
            try {
                TimeUnit.NANOSECONDS.timedWait(
                        this, hasPeers ? AGAIN_NANOS : Math.min(left, SECOND_NANOS));
            } catch (InterruptedException e) {
                interrupted = true;
                break;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return users() <= runs;
    }

    /** Makes the last user destroy the strategy. Runs end, so there is a last one. */
    private void endWhenUnused() {
        cancel();
    }

    private void cancel() {
        try {
            DistModule.dist_strategy_cancel(handle());
        } catch (DistException e) {
            // nothing is lost: it ends with its last user
        }
    }

    /** The last run to end destroys the strategy, or this does. */
    private void endShutDown() {
        List<Native> left;
        synchronized (this) {
            shutDown = true;
            shuttingDown = false;
            left = List.copyOf(dependents);
        }
        left.forEach(Native::closeLater);
        endIfClosed();
    }
}
