// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.concurrent.TimeUnit;
import org.libdist.internal.DistModule;

/**
 * The queue that receives all completed requests of the program, and the one thread that empties it. The thread ends
 * some time after the last request, so that it does not keep the class loader alive.
 */
final class Completions {
    private static final long BUSY_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long IDLE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private static long queue; // 0: there is no thread
    private static volatile Thread taker;

    private Completions() {}

    /** Returns whether this thread, in a dependent stage, is the one that empties the queue. */
    static boolean isTaker() {
        return Thread.currentThread() == taker;
    }

    /** The queue, for a request that is registered already. */
    static synchronized long queue() {
        if (queue == 0) {
            long[] out = new long[1];
            DistModule.dist_completions_create(out);
            Thread thread = new Thread(Completions::takeAll, "dist-completions");
            thread.setDaemon(true);
            queue = out[0];
            taker = thread;
            thread.start();
        }
        return queue;
    }

    /** Removes the request that completed first, if there is one. Called on the thread that empties the queue. */
    static void takeOne(long timeoutNanos) {
        take(timeoutNanos);
    }

    private static boolean take(long timeoutNanos) {
        long[] out = new long[1];
        DistModule.dist_completions_next(queue, timeoutNanos, out);
        if (out[0] == 0) {
            return false;
        }
        Target target = Upcalls.known(DistModule.dist_request_user_data(out[0]));
        if (target != null) {
            ((Request.Call<?>) target).arrived(out[0]);
        } else { // another arrival of an item that has been finished
            DistModule.dist_request_destroy(out[0]);
        }
        return true;
    }

    private static void takeAll() {
        do {
            try {
                while (take(Upcalls.isEmpty() ? IDLE_NANOS : BUSY_NANOS)) {
                    continue;
                }
            } catch (Throwable t) { // of a dependent's that the future lets through, or no memory
                Thread here = Thread.currentThread();
                here.getUncaughtExceptionHandler().uncaughtException(here, t);
            }
        } while (!end());
    }

    private static synchronized boolean end() {
        if (!Upcalls.isEmpty()) {
            return false;
        }
        DistModule.dist_completions_destroy(queue);
        queue = 0;
        taker = null;
        return true;
    }
}
