// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Optional;

/** Information about a call, for its method; valid during the call. */
public final class RpcContext {
    private final String method;
    private final long timeoutNanos;
    private final ResultCancel wanted;

    RpcContext(String method, long handle, long timeoutNanos) {
        this.method = method;
        this.timeoutNanos = timeoutNanos;
        wanted = new ResultCancel(handle, "nobody waits for the method's result any more", "the call of the method is over");
    }

    /** Returns the name of the method. */
    public String method() {
        return method;
    }

    /** Returns how long the client waits in total; empty if there is no limit. */
    public Optional<Duration> timeout() {
        return timeoutNanos > 0 ? Optional.of(Duration.ofNanos(timeoutNanos)) : Optional.empty();
    }

    /** Returns whether no client waits for the result any more. */
    public boolean isCancelled() {
        return wanted.isCancelled();
    }

    /**
     * Returns an object for calls in which the method waits, for example for {@link RunOptions#cancel}. It is
     * signalled, with a delay of a few milliseconds, when no client waits for the result any more. It is
     * closed with the call.
     */
    public Cancel cancel() {
        return wanted.cancel();
    }

    /** Called after the method has returned. */
    void end() {
        wanted.end();
    }
}
