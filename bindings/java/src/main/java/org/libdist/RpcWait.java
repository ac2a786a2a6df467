// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;
import org.libdist.internal.dist_rpc_call_options;

/** A call that waits for its result: an interrupt of its thread ends it, and its client's end, and its options' Cancel. */
final class RpcWait implements Cancel.Ended {
    private static final String INTERRUPTED = "the thread that calls was interrupted";

    private long cancel; // libdist's object for this call alone; 0: it is over
    private boolean interrupted;

    @FunctionalInterface
    interface Call {
        void with(long client, dist_rpc_call_options options);
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

    /** Does the call, of an open client. */
    void run(Uses uses, RpcClient client, RpcCallOptions options, Call call) {
        long handle = uses.of(client);
        Cancel given = options.cancel();
        long[] own = new long[1];
        DistModule.dist_cancel_create(own);
        synchronized (this) {
            cancel = own[0];
        }
        uses.defer(this::over);
        client.begin(this);
        uses.defer(() -> client.end(this));
        if (given != null) {
            given.begin(this);
            uses.defer(() -> given.end(this));
        }
        Interrupts watch = Interrupts.watch(this::interrupted);
        try {
            call.with(handle, options.toNative(uses, own[0]));
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
