// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/** Detects when the result of a running function is no longer needed. */
final class ResultCancel {
    private final String reason; // of the program's Cancel
    private final String over; // that the function has returned
    private long handle; // of libdist's cancel object; 0: over
    private boolean cancelled;
    private Cancel cancel; // null = not requested

    ResultCancel(long handle, String reason, String over) {
        this.handle = handle;
        this.reason = reason;
        this.over = over;
    }

    synchronized boolean isCancelled() {
        if (!cancelled && handle != 0) {
            cancelled = DistModule.dist_cancel_signalled(handle) != 0;
        }
        return cancelled;
    }

    /** Returns an object that is signalled, with a delay of a few milliseconds. */
    synchronized Cancel cancel() {
        if (handle == 0) {
            throw new DistException(Status.FAILED_PRECONDITION, over);
        }
        if (cancel == null) {
            cancel = Cancel.create();
            Polls.add(this::signal);
        }
        return cancel;
    }

    /** Returns whether polling can stop. */
    private boolean signal() {
        Cancel told;
        synchronized (this) {
            if (handle == 0) {
                return true;
            }
            if (!isCancelled()) {
                return false;
            }
            told = cancel;
        }
        try {
            told.signal(reason);
        } catch (DistException e) {
            // the function has just returned, or has closed it
        }
        return true;
    }

    /** Ends this object after the function has returned. */
    void end() {
        Cancel ended;
        synchronized (this) {
            handle = 0;
            ended = cancel;
        }
        if (ended != null) {
            ended.close();
        }
    }
}
