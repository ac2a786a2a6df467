// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/**
 * The token and the cancel object of a run. A run that succeeds leaves them to the next run of its strategy,
 * because making and destroying them takes longer than a short run.
 */
final class RunSlot extends Target {
    private final long token;
    private final long cancel;
    private volatile RunCall call; // null: none

    RunSlot() {
        long[] out = new long[1];
        DistModule.dist_cancel_create(out);
        cancel = out[0];
        token = Upcalls.register(this);
    }

    void begin(RunCall run) {
        call = run;
    }

    /** Afterwards no run uses it. */
    void end() {
        call = null;
    }

    void destroy() {
        Upcalls.unregister(token);
        DistModule.dist_cancel_destroy(cancel);
    }

    long token() {
        return token;
    }

    long cancel() {
        return cancel;
    }

    private RunCall call() {
        RunCall now = call;
        if (now == null) {
            throw Upcalls.tooLate();
        }
        return now;
    }

    @Override
    void replica(long replica, int id, int numReplicas) throws Exception {
        call().replica(replica, id, numReplicas);
    }

    @Override
    long values(long replica, long args, long kwargs) throws Exception {
        return call().values(replica, args, kwargs);
    }

    @Override
    void keep(Throwable t) {
        RunCall now = call;
        if (now != null) {
            now.keep(t);
        }
    }
}
