// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.List;
import org.libdist.internal.DistModule;

/**
 * Cancels calls from any thread: {@link RunOptions#cancel}, {@link CollectiveOptions#cancel}, {@link
 * DevicesOptions#cancel}, {@link RpcCallOptions#cancel}, {@link ScheduleOptions#cancel}, {@link
 * SubmitOptions#cancel}. One object can serve any number of calls at the same time, also of different
 * strategies. Calls without it are not affected.
 *
 * <pre>{@code
 * try (Cancel shutdown = Cancel.create()) {
 *     onShutdown(() -> shutdown.signal("the server shuts down"));
 *     strategy.run(step, RunOptions.DEFAULT.cancel(shutdown)); // then fails with CANCELLED, queued or in progress
 * }
 * }</pre>
 */
public final class Cancel extends NativeObject {
    private final List<Ended> calls = new ArrayList<>(1);
    private String reason; // null: none
    private boolean signalled;

    private Cancel(long handle) {
        super(new Native("cancel object", handle, DistModule::dist_cancel_destroy));
    }

    /** Creates an object that has not been signalled. */
    public static Cancel create() {
        long[] out = new long[1];
        DistModule.dist_cancel_create(out);
        return new Cancel(out[0]);
    }

    /** Same as {@link #signal(String)}, without a reason. */
    public void signal() {
        signalled(null);
    }

    /**
     * Cancels everything that was started with this object. Calls in progress fail with CANCELLED, and calls
     * that are started with it later fail at once. A queued run never starts. A collective ends its group's
     * rounds in that run, on every member. A signal cannot be undone, and a second one has no effect.
     *
     * @param reason text that every report contains
     */
    public void signal(String reason) {
        Texts.bytes(reason, "reason"); // refused before anything is signalled
        signalled(reason);
    }

    private void signalled(String why) {
        List<Ended> all;
        synchronized (this) {
            if (!signalled) {
                signalled = true;
                reason = why;
            }
            all = new ArrayList<>(calls);
        }
        ask(handle -> {
            DistModule.dist_cancel_signal(handle, Texts.orNull(why));
            return null;
        });
        all.forEach(call -> call.cancel(why));
    }

    /** Returns whether the object has been signalled and everything that it cancels has been notified. */
    public boolean isSignalled() {
        return askInt(DistModule::dist_cancel_signalled) != 0;
    }

    /** A call that a signal cancels. */
    @FunctionalInterface
    interface Ended {
        /** @param reason null: none */
        void cancel(String reason);
    }

    /**
     * Makes a signal also cancel a call that has a native cancel object of its own, for interrupts of its
     * thread.
     */
    void begin(Ended call) {
        synchronized (this) {
            if (!signalled) {
                calls.add(call);
                return;
            }
        }
        call.cancel(reason);
    }

    synchronized void end(Ended call) {
        calls.remove(call);
    }

    /** Closes the object. Calls that were started with it continue. */
    @Override
    public void close() {
        super.close();
    }
}
