// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.List;

/** One run: what its replicas leave behind is held until it is over. */
abstract class RunCall extends Target {
    final Strategy strategy;
    private final Interrupts interrupts;
    private final List<Work> left = new ArrayList<>(0);
    private final List<Object> kept = new ArrayList<>(0);
    private boolean over;

    RunCall(Strategy strategy) {
        this.strategy = strategy;
        interrupts = new Interrupts(strategy);
    }

    @FunctionalInterface
    interface Body<T> {
        T call(Replica replica) throws Exception;
    }

    /** Calls a function of the user's as a replica. */
    final <T> T asReplica(long handle, Body<T> body) throws Exception {
        begun();
        Replica replica = new Replica(strategy, handle, this);
        Replica outer = replica.begin();
        try {
            return body.call(replica);
        } finally {
            replica.end(outer);
        }
    }

    /** Work that a replica's function has left under way: libdist brings it to its end. */
    final void leave(List<Work> works) {
        synchronized (left) {
            if (!over) {
                left.addAll(works);
                return;
            }
        }
        works.forEach(work -> work.cancel(false)); // after the run's deadline: nobody will come
    }

    final void hold(Object object) {
        synchronized (left) {
            kept.add(object);
        }
    }

    final void begun() {
        interrupts.begun();
    }

    /** From now on an interrupt of this thread cancels the run. */
    final void watch() {
        interrupts.enter();
    }

    final void unwatch() {
        interrupts.leave();
    }

    /** The run is over. */
    final void settle() {
        List<Work> works;
        synchronized (left) {
            over = true;
            works = new ArrayList<>(left);
            left.clear();
            kept.clear();
        }
        works.forEach(Work::settle);
    }

    /** The run itself. */
    final <X extends Exception> void run(Calls.Call call) throws X {
        if (Thread.currentThread().isInterrupted()) {
            throw Interrupts.cancelled();
        }
        watch();
        try {
            Calls.<X>run(this, call);
        } finally {
            unwatch();
            settle();
            strategy.life().collectRest();
        }
    }
}
