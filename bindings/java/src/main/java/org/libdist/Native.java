// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.Cleaner;
import java.util.function.LongConsumer;

/**
 * A native handle and the number of calls that use it. It is separate from the object that programs see, so
 * that the cleaner can refer to it. If it is closed while another thread uses it, it is destroyed when that
 * call has returned.
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

    /** Returns whether something else has already destroyed it. */
    boolean isTaken() {
        return false;
    }

    /** Called after it has been destroyed. */
    void destroyed() {}

    /** Returns the handle, which stays valid until {@link #release} has been called as often as acquire. */
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

    /** Returns the number of calls that use it. Requires this object's lock. */
    final int users() {
        return users;
    }

    /**
     * Sets whether new uses are refused; returns true if the setting has changed. Requires this object's
     * lock.
     */
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

    /** Returns whether nothing prevents its destruction. */
    boolean isIdle() {
        return users == 0;
    }

    synchronized boolean isClosed() {
        return closed;
    }

    /** Destroys it, at the latest when no call uses it any more. If that fails, it is unchanged. */
    synchronized void close() {
        if (!closed) {
            if (isIdle()) {
                destroy();
            }
            closed = true;
        }
    }

    /** Closes it on behalf of the cleaner, when it is no longer reachable. */
    void collect() {
        close();
    }

    /** Destroys it by another function. No call may use it. */
    final synchronized void endBy(LongConsumer end) {
        if (!closed) {
            closed = true;
            end.accept(handle);
            Pressure.remove(sizeBytes);
        }
    }

    /** Transfers the handle: it is closed here, and its new owner destroys it. */
    final synchronized long handOver() {
        acquire();
        closed = true; // its user stays: it is never ended here
        Pressure.remove(sizeBytes);
        return handle;
    }

    /** Destroys it now, or when its last user has finished. */
    final synchronized void closeLater() {
        if (!closed) {
            closed = true;
            endIfClosed();
        }
    }

    /** Destroys it now, or fails if another call uses it or libdist refuses. */
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
