// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.List;
import org.libdist.internal.DistModule;

/**
 * An object by which any thread can ask what was begun with it to end early: {@link RunOptions#cancel},
 * {@link CollectiveOptions#cancel}, {@link DevicesOptions#cancel}, {@link RpcCallOptions#cancel}, {@link ScheduleOptions#cancel},
 * {@link SubmitOptions#cancel}.
 * One may serve any number of calls, of any strategies, at the same time; what was begun without it, or with another one, goes
 * on.
 *
 * <pre>{@code
 * try (Cancel shutdown = new Cancel()) {
 *     onShutdown(() -> shutdown.signal("the server shuts down"));
 *     strategy.run(step, RunOptions.DEFAULT.cancel(shutdown)); // CANCELLED then, queued or under way
 * }
 * }</pre>
 */
public final class Cancel extends NativeObject {
    private final List<Ended> calls = new ArrayList<>(1);
    private String reason; // null: none
    private boolean signalled;

    /** One that has not been signalled. */
    public Cancel() {
        super(new Native("cancel object", create(), DistModule::dist_cancel_destroy));
    }

    private static long create() {
        long[] out = new long[1];
        DistModule.dist_cancel_create(out);
        return out[0];
    }

    /** As {@link #signal(String)}, without a reason. */
    public void signal() {
        signalled(null);
    }

    /**
     * Asks, for good: what was begun with it ends with CANCELLED, and so does, at once, what is begun with it
     * later. A run that waits for earlier ones never begins. A collective ends its group's rounds in that
     * run, on every member. A second signal changes nothing.
     *
     * @param reason which every report then has
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

    /** Whether it has been signalled, and all that this ends has been told. */
    public boolean isSignalled() {
        return askInt(DistModule::dist_cancel_signalled) != 0;
    }

    /** What a signal ends. */
    @FunctionalInterface
    interface Ended {
        /** @param reason null: none */
        void cancel(String reason);
    }

    /**
     * Ends the call too, which has a native object of its own: for interrupts, which are no business of
     * others.
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

    /** Gives it up: what was begun with it goes on. */
    @Override
    public void close() {
        super.close();
    }
}
