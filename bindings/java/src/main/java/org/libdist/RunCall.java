// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.List;
import org.libdist.internal.DistModule;

/**
 * One run. It keeps what its replicas leave behind until it has ended, and an interrupt of its threads
 * cancels it.
 */
abstract class RunCall extends Target implements Cancel.Ended {
    final Strategy strategy;
    private final Thread caller = Thread.currentThread();
    private final List<Work> left = new ArrayList<>(0);
    private final List<Object> kept = new ArrayList<>(0);
    private final Object ending = new Object();
    private long cancel; // libdist's object for this run; 0 = the run has ended, or has none
    private boolean signalled; // the cancel object
    private boolean over;
    private Thread interrupted; // the first of its threads that was; null: none

    RunCall(Strategy strategy) {
        this.strategy = strategy;
    }

    @FunctionalInterface
    interface Body<T> {
        T call(Replica replica) throws Exception;
    }

    /** Calls a function of the program as a replica. */
    final <T> T asReplica(long handle, Body<T> body) throws Exception {
        return asReplica(new Replica(strategy, handle, this), body);
    }

    /** Same as {@link #asReplica(long, Body)}, with an object made on this thread. */
    final <T> T asReplica(Replica replica, Body<T> body) throws Exception {
        Interrupts watch = Thread.currentThread() == caller ? null : Interrupts.watch(this::interrupted);
        try {
            Replica outer = replica.begin();
            try {
                return body.call(replica);
            } finally {
                replica.end(outer);
            }
        } finally {
            if (watch != null) {
                watch.end();
            }
        }
    }

    /** Keeps works that a replica's function has left in progress; libdist completes them. */
    final void leave(List<Work> works) {
        synchronized (left) {
            if (!over) {
                left.addAll(works);
                return;
            }
        }
        works.forEach(work -> work.cancel(false)); // after the run's deadline, peers will not arrive
    }

    final void hold(Object object) {
        synchronized (left) {
            kept.add(object);
        }
    }

    /** Cancels only this run, because one of its threads was interrupted. */
    final void interrupted(Thread thread) {
        synchronized (left) {
            if (interrupted != null || over) {
                return;
            }
            interrupted = thread;
        }
        cancel(interruption().getMessage());
    }

    private boolean isInterrupted() {
        synchronized (left) {
            return interrupted != null;
        }
    }

    /**
     * Ends this run, waiting or under way, and none other.
     *
     * @param reason null: none
     */
    @Override
    public void cancel(String reason) {
        synchronized (ending) {
            if (cancel != 0) {
                signalled = true;
                DistModule.dist_cancel_signal(cancel, Texts.orNull(reason));
            }
        }
    }

    @FunctionalInterface
    interface Cancellable {
        void with(long token, long cancel);
    }

    /** Makes a call that {@link #cancel} cancels, and {@code given} too, if it is not null. */
    private <X extends Exception> void cancellable(Cancel given, Cancellable call) throws X {
        RunSlot slot = strategy.life().takeSlot();
        boolean well = false;
        slot.begin(this);
        synchronized (ending) {
            cancel = slot.cancel();
        }
        try {
            // An interrupt that came before this found nothing to end.
            if (isInterrupted()) {
                cancel(interruption().getMessage());
            }
            if (given != null) {
                given.begin(this);
            }
            try {
                call.with(slot.token(), slot.cancel());
                well = true;
            } catch (DistException report) {
                throw Target.<X>rethrow(cause(report));
            }
        } finally {
            if (given != null) {
                given.end(this);
            }
            synchronized (ending) {
                cancel = 0;
                well &= !signalled;
            }
            strategy.life().giveSlot(slot, well);
        }
        check();
    }

    /** Returns the exception that run() throws if an interrupt has ended the run. */
    final DistException interruption() {
        Thread thread;
        synchronized (left) {
            thread = interrupted == null ? caller : interrupted;
        }
        String what = thread == caller ? "the thread that runs was interrupted"
                                       : "a replica's thread was interrupted: " + thread.getName();
        return new DistException(Status.CANCELLED, what, new InterruptedException(what));
    }

    /** Cleans up after the run has ended. */
    final void settle() {
        List<Work> works = List.of();
        synchronized (left) {
            over = true;
            if (!left.isEmpty()) {
                works = new ArrayList<>(left);
                left.clear();
            }
            kept.clear();
        }
        works.forEach(Work::settle);
    }

    /** Makes a run inside a run. Interrupts of the thread end both. */
    final <X extends Exception> void runWithin(Cancel given, Cancellable call) throws X {
        try {
            this.<X>cancellable(given, call);
        } finally {
            settle();
        }
    }

    /** Makes the run. */
    final <X extends Exception> void run(Cancel given, Cancellable call) throws X {
        if (caller.isInterrupted() && !strategy.hasPeers()) { // other workers have to hear of it
            throw interruption();
        }
        Interrupts watch = Interrupts.watch(this::interrupted);
        try {
            this.<X>cancellable(given, call);
        } catch (DistException e) {
            explained(e);
            throw e;
        } finally {
            watch.end();
            settle();
            strategy.life().collectRest();
        }
    }

    /** Adds the interrupt to a report that it has caused. */
    final Throwable explained(Throwable t) {
        boolean byInterrupt;
        synchronized (left) {
            byInterrupt = interrupted != null;
        }
        if (byInterrupt && isTold(t) && ((DistException) t).status() == Status.CANCELLED
                && t.getCause() == null) {
            t.initCause(interruption().getCause());
        }
        return t;
    }
}
