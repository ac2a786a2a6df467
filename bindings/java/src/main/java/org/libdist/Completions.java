// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/** Where all requests of the program arrive when they have ended, and the one thread that takes them. */
final class Completions {
    private static final long QUEUE = create();

    private Completions() {}

    private static long create() {
        long[] out = new long[1];
        DistModule.dist_completions_create(out);
        Thread taker = new Thread(() -> take(out[0]), "dist-completions");
        taker.setDaemon(true);
        taker.start();
        return out[0];
    }

    static long queue() {
        return QUEUE;
    }

    private static void take(long queue) {
        long[] out = new long[1];
        while (true) {
            try {
                DistModule.dist_completions_next(queue, -1, out);
                ((Request.Call<?>) Upcalls.target(DistModule.dist_work_user_data(out[0]))).over(out[0]);
            } catch (Throwable t) { // of a dependent's that the future lets through, or no memory
                Thread here = Thread.currentThread();
                here.getUncaughtExceptionHandler().uncaughtException(here, t);
            }
        }
    }
}
