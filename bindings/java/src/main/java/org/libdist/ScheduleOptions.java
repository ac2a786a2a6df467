// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import org.libdist.internal.dist_schedule_options;

/** Options of {@link Coordinator#schedule}. Immutable: each method returns a new set of options. */
public final class ScheduleOptions {
    /** The default options: the coordinator's timeout. */
    public static final ScheduleOptions DEFAULT = new ScheduleOptions(0, null);

    private final long timeoutNanos;
    private final Cancel cancel; // null: none

    private ScheduleOptions(long timeoutNanos, Cancel cancel) {
        this.timeoutNanos = timeoutNanos;
        this.cancel = cancel;
    }

    /**
     * Sets the longest wait for a place in the queue; zero selects the coordinator's timeout, and a negative
     * value means no limit.
     */
    public ScheduleOptions timeout(Duration timeout) {
        return new ScheduleOptions(Durations.nanos(timeout, "timeout"), cancel);
    }

    /** Sets an object that cancels the wait. It does not cancel a closure that has been scheduled. */
    public ScheduleOptions cancel(Cancel cancel) {
        return new ScheduleOptions(timeoutNanos, Objects.requireNonNull(cancel, "cancel"));
    }

    Cancel cancel() {
        return cancel;
    }

    /** @param cancel the call's own */
    dist_schedule_options toNative(Uses uses, long cancel) {
        dist_schedule_options options = new dist_schedule_options();
        uses.defer(options::delete);
        options.setTimeout_ns(timeoutNanos);
        options.setCancel(cancel);
        return options;
    }
}
