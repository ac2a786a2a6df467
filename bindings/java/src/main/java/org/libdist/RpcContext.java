// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Optional;

/** What a method knows of a call; there during the call. */
public final class RpcContext {
    private final String method;
    private final long timeoutNanos;
    private final ResultCancel wanted;

    RpcContext(String method, long handle, long timeoutNanos) {
        this.method = method;
        this.timeoutNanos = timeoutNanos;
        wanted = new ResultCancel(handle, "nobody waits for the method's result any more", "the call of the method is over");
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
    public boolean isCancelled() {
        return wanted.isCancelled();
    }

    /**
     * For what the method waits in, {@link RunOptions#cancel} for instance: signalled when nobody waits for the result
     * any more, a few milliseconds later. It ends with the call.
     */
    public Cancel cancel() {
        return wanted.cancel();
    }

    /** The method has returned. */
    void end() {
        wanted.end();
    }
}
