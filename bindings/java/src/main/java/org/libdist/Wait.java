// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.HashSet;
import java.util.Set;
import java.util.function.LongConsumer;
import org.libdist.internal.DistModule;

/**
 * A blocking call that can be cancelled by an interrupt of its thread, by the end of the object that it uses,
 * and by a {@link Cancel}.
 */
final class Wait implements Cancel.Ended {
    private static final String INTERRUPTED = "the thread that calls was interrupted";

    private long cancel; // libdist's object for this call; 0 = the call has ended
    private boolean interrupted;

    private Wait() {}

    /** The blocking calls of an object that may end meanwhile. */
    static final class Calls {
        private final Set<Wait> waits = new HashSet<>();
        private String over; // why they end; null: they do not

        private synchronized void begin(Wait wait) {
            waits.add(wait);
            if (over != null) {
                wait.cancel(over);
            }
        }

        private synchronized void end(Wait wait) {
            waits.remove(wait);
        }

        /** Cancels the blocking calls, and all later ones. */
        synchronized void end(String reason) {
            over = reason;
            waits.forEach(wait -> wait.cancel(reason));
        }
    }

    @Override
    public synchronized void cancel(String reason) {
        if (cancel != 0) {
            DistModule.dist_cancel_signal(cancel, Texts.orNull(reason));
        }
    }

    private synchronized void interrupted(Thread thread) {
        interrupted = true;
        cancel(INTERRUPTED);
    }

    /**
     * Makes a call with a cancel object of its own.
     *
     * @param calls the calls to which it belongs
     * @param given cancels it too; null means none
     */
    static void run(Uses uses, Calls calls, Cancel given, LongConsumer call) {
        new Wait().begin(uses, calls, given, call);
    }

    private void begin(Uses uses, Calls calls, Cancel given, LongConsumer call) {
        long[] own = new long[1];
        DistModule.dist_cancel_create(own);
        synchronized (this) {
            cancel = own[0];
        }
        uses.defer(this::over);
        calls.begin(this);
        uses.defer(() -> calls.end(this));
        if (given != null) {
            given.begin(this);
            uses.defer(() -> given.end(this));
        }
        Interrupts watch = Interrupts.watch(this::interrupted);
        try {
            call.accept(own[0]);
        } catch (DistException e) {
            if (isInterrupted() && e.status() == Status.CANCELLED && e.getCause() == null) {
                e.initCause(new InterruptedException(INTERRUPTED));
            }
            throw e;
        } finally {
            watch.end();
        }
    }

    private synchronized boolean isInterrupted() {
        return interrupted;
    }

    private synchronized void over() {
        DistModule.dist_cancel_destroy(cancel);
        cancel = 0;
    }
}
