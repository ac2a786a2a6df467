// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/** The part of one thread of the program in a run, from enter to leave. */
final class HostRun extends RunCall {
    private volatile boolean entered;
    private volatile boolean cancelled;

    HostRun(Strategy strategy) {
        super(strategy);
    }

    Replica enter(int replicaId) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_replica_enter(uses.of(strategy), replicaId, out);
            Replica replica = new Replica(strategy, out[0], this);
            replica.begin();
            entered = true;
            if (cancelled) { // while it waited for an earlier run, which is none of its own
                strategy.cancelIfOpen();
            }
            return replica;
        }
    }

    @Override
    public void cancel(String reason) {
        cancelled = true;
        if (entered) {
            strategy.cancelIfOpen();
        }
    }

    void leave(long replica, int status) {
        try {
            DistModule.dist_replica_leave(replica, status);
        } finally {
            settle();
            strategy.life().collectRest();
        }
    }

    /** Enters the run, calls the body and leaves. */
    <X extends Exception> void run(int replicaId, RunFunction<X> body) throws X {
        if (Thread.currentThread().isInterrupted()) {
            throw interruption();
        }
        Interrupts watch = Interrupts.watch(this::interrupted);
        try {
            Replica replica = enter(replicaId);
            Throwable failure = null;
            try {
                body.call(replica);
            } catch (Throwable t) {
                failure = t;
                keep(t);
            }
            try {
                replica.leave(failure);
            } catch (DistException report) {
                throw Target.<X>rethrow(explained(cause(report)));
            }
        } finally {
            watch.end();
        }
    }
}
