// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Optional;
import org.libdist.internal.DistModule;

/** What a method knows of a call; there during the call. */
public final class RpcContext {
    private final String method;
    private final long timeoutNanos;
    private long handle; // of the call's own cancel object; 0: the call is over
    private boolean cancelled;
    private Cancel cancel; // null: nobody has asked for it

    RpcContext(String method, long handle, long timeoutNanos) {
        this.method = method;
        this.handle = handle;
        this.timeoutNanos = timeoutNanos;
    }

    /** The method's name. */
    public String method() {
        return method;
    }

    /** How long the client waits in all; empty: without limit. */
    public Optional<Duration> timeout() {
        return timeoutNanos > 0 ? Optional.of(Duration.ofNanos(timeoutNanos)) : Optional.empty();
    }

    /** Whether nobody waits for the result any more. */
    public synchronized boolean isCancelled() {
        if (!cancelled && handle != 0) {
            cancelled = DistModule.dist_cancel_signalled(handle) != 0;
        }
        return cancelled;
    }

    /**
     * For what the method waits in, {@link RunOptions#cancel} for instance: signalled when nobody waits for the result
     * any more, a few milliseconds later. It ends with the call.
     */
    public synchronized Cancel cancel() {
        if (handle == 0) {
            throw new DistException(Status.FAILED_PRECONDITION, "the call of the method is over");
        }
        if (cancel == null) {
            cancel = new Cancel();
            Polls.add(this::signal);
        }
        return cancel;
    }

    /** Whether there is nothing more to ask. */
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
            told.signal("nobody waits for the method's result any more");
        } catch (DistException e) {
            // the method has just returned, or has closed it
        }
        return true;
    }

    /** The method has returned. */
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
