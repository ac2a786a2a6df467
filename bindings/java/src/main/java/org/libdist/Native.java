// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.Cleaner;
import java.util.function.LongConsumer;

/**
 * A handle, and who uses it: apart from the object that users see, so that the cleaner can hold it. What is
 * closed while another thread uses it ends when that call is over.
 */
class Native {
    static final Cleaner CLEANER = Cleaner.create();

    private final String what;
    private final long handle;
    private final LongConsumer destroy;
    private final long sizeBytes;
    private int users;
    private boolean closed;

    /** @param what it is, for messages: "strategy" */
    Native(String what, long handle, LongConsumer destroy) {
        this(what, handle, destroy, 0);
    }

    /** @param sizeBytes of libdist's memory that it holds */
    Native(String what, long handle, LongConsumer destroy, long sizeBytes) {
        this.what = what;
        this.handle = handle;
        this.destroy = destroy;
        this.sizeBytes = sizeBytes;
        Pressure.add(sizeBytes);
    }

    private void destroy() {
        if (!isTaken()) {
            destroy.accept(handle);
        }
        Pressure.remove(sizeBytes);
        destroyed();
    }

    /** Whether something else has ended it already. */
    boolean isTaken() {
        return false;
    }

    /** It has ended. */
    void destroyed() {}

    /** The handle, until as many {@link #release} as acquire. */
    synchronized long acquire() {
        if (closed) {
            throw new DistException(Status.FAILED_PRECONDITION, "the " + what + " is closed");
        }
        users++;
        return handle;
    }

    synchronized void release() {
        users--;
        endIfClosed();
        notifyAll();
    }

    /** How many calls it is in; under this object's lock. */
    final int users() {
        return users;
    }

    /** Refuses new users; true: it did not before. Under this object's lock. */
    final boolean refuse(boolean refused) {
        boolean before = closed;
        closed = refused;
        return before != refused;
    }

    final long handle() {
        return handle;
    }

    final synchronized void endIfClosed() {
        if (closed && isIdle()) {
            destroy();
        }
    }

    /** Whether nothing hinders its end. */
    boolean isIdle() {
        return users == 0;
    }

    synchronized boolean isClosed() {
        return closed;
    }

    /** Ends it, at the latest when nobody uses it any more. What fails leaves it as it was. */
    synchronized void close() {
        if (!closed) {
            if (isIdle()) {
                destroy();
            }
            closed = true;
        }
    }

    /** As {@link #close}, by the cleaner: nobody has it any more. */
    void collect() {
        close();
    }

    /** Ends it in another way; nobody uses it any more. */
    final synchronized void endBy(LongConsumer end) {
        if (!closed) {
            closed = true;
            end.accept(handle);
            Pressure.remove(sizeBytes);
        }
    }

    /** Gives the handle away: closed here, and ended by who has it then. */
    final synchronized long handOver() {
        acquire();
        closed = true; // its user stays: it is never ended here
        Pressure.remove(sizeBytes);
        return handle;
    }

    /** Ends it now, or when its last user is done. */
    final synchronized void closeLater() {
        if (!closed) {
            closed = true;
            endIfClosed();
        }
    }

    /** Ends it now, or not: where another call uses it, and where libdist refuses. */
    final synchronized void closeUnused(String refusal) {
        if (closed) {
            return;
        }
        if (users > 0) {
            throw new DistException(Status.FAILED_PRECONDITION, refusal);
        }
        destroy();
        closed = true;
    }
}
