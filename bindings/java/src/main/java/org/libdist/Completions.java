// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/** The queue that receives all completed requests of the program, and the one thread that empties it. */
final class Completions {
    private static final long QUEUE = create();

    private Completions() {}

    private static Thread taker;

    private static long create() {
        long[] out = new long[1];
        DistModule.dist_completions_create(out);
        taker = new Thread(Completions::takeAll, "dist-completions");
        taker.setDaemon(true);
        taker.start();
        return out[0];
    }

    /** Returns whether this thread, in a dependent stage, is the one that empties the queue. */
    static boolean isTaker() {
        return Thread.currentThread() == taker;
    }

    static long queue() {
        return QUEUE;
    }

    /** Removes the request that completed first, if there is one. */
    static void takeOne(long timeoutNanos) {
        long[] out = new long[1];
        DistModule.dist_completions_next(QUEUE, timeoutNanos, out);
        if (out[0] != 0) {
            Target target = Upcalls.known(DistModule.dist_work_user_data(out[0]));
            if (target != null) {
                ((Request.Call<?>) target).arrived(out[0]);
            } else { // an item that has come once more after its end
                DistModule.dist_work_destroy(out[0]);
            }
        }
    }

    private static void takeAll() {
        while (true) {
            try {
                takeOne(-1);
            } catch (Throwable t) { // of a dependent's that the future lets through, or no memory
                Thread here = Thread.currentThread();
                here.getUncaughtExceptionHandler().uncaughtException(here, t);
            }
        }
    }
}
