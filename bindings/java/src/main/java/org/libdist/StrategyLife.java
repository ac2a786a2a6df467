// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
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
    private final LongConsumer forget; // what Java knows of the strategy besides
    private int runs; // of its users those that a shutdown ends, except for the next
    private final List<RunCall> calls = new ArrayList<>(1); // runs: users that a shutdown ends once they have begun
    private final AtomicReference<RunSlot> spare = new AtomicReference<>(); // for the next run; null: none
    private volatile boolean ended; // there is no next run
    private volatile boolean shuttingDown; // libdist is taking the handle
    private volatile boolean shutDown; // libdist has taken it

    /** @param forget is part of {@code destroy} too */
    StrategyLife(long handle, LongConsumer destroy, LongConsumer forget) {
        super("strategy", handle, destroy);
        this.forget = forget;
    }

    @Override
    boolean isIdle() {
        return super.isIdle() && !shuttingDown && !shutDown && dependents.isEmpty();
    }

    /** Returns whether a call uses the strategy, or it is closed. */
    synchronized boolean isUsed() {
        return users() > 0 || isClosed();
    }

    synchronized void running(int more) {
        runs += more;
    }

    /** Returns the handle for a run that libdist does not know yet. */
    synchronized long comes(RunCall run) {
        long handle = acquire();
        calls.add(run);
        return handle;
    }

    /** Called when the run has ended; ends its use of the strategy. */
    synchronized void leaves(RunCall run) {
        calls.remove(run);
        release();
    }

    /** Returns the number of users that a shutdown ends. Requires this object's lock. */
    private int endable() {
        int all = runs;
        for (RunCall run : calls) {
            all += run.hasBegun() ? 1 : 0;
        }
        return all;
    }

    RunSlot takeSlot() {
        RunSlot slot = spare.get() == null ? null : spare.getAndSet(null);
        return slot == null ? new RunSlot() : slot;
    }

    /** @param reusable whether no function can come to it any more, and it has not been signalled */
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
            shuttingDown = true; // who ends from now on leaves the handle alone
            if (!awaitOthers(timeoutNanos, hasPeers)) { // they may use the handle for as long as they like
                shuttingDown = false;
                endWhenUnused();
                throw new DistException(Status.DEADLINE_EXCEEDED,
                        "the strategy is closed, but " + (users() - endable())
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
            taken();
            throw e;
        }
        taken();
    }

    /**
     * Returns whether all users except runs have finished in time. Requires this object's lock, which is
     * released while waiting. A run that libdist may not know yet is cancelled here, because libdist must not
     * take the handle from it.
     */
    private boolean awaitOthers(long timeoutNanos, boolean hasPeers) {
        long deadline = System.nanoTime() + timeoutNanos;
        boolean interrupted = false;
        while (users() > endable()) {
            long left = timeoutNanos < 0 ? Long.MAX_VALUE : deadline - System.nanoTime();
            boolean hasOthers = users() > runs + calls.size();
            boolean coming = false;
            for (RunCall run : calls) {
                if (!run.hasBegun()) {
                    coming = true;
                    run.cancel("Strategy.close()");
                }
            }
            if (left <= 0 && hasOthers) {
                break;
            }
            if (hasPeers && hasOthers) { // again, as a call may only be on its way to its wait
                cancel();
            }
            boolean again = hasPeers || coming;
            try {
                TimeUnit.NANOSECONDS.timedWait(
                        this, again ? AGAIN_NANOS : Math.min(left, SECOND_NANOS));
            } catch (InterruptedException e) {
                interrupted = true;
                break;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return users() <= endable();
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

    private void taken() {
        List<Native> left;
        synchronized (this) {
            shutDown = true;
            left = List.copyOf(dependents);
        }
        left.forEach(Native::closeLater);
        endSlot();
        forget.accept(handle());
    }
}
