// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import org.libdist.internal.dist_schedule_options;

/** Rare choices for {@link Coordinator#schedule}. Immutable: each method gives another set of options. */
public final class ScheduleOptions {
    /** With the coordinator's time-out. */
    public static final ScheduleOptions DEFAULT = new ScheduleOptions(0, null);

    private final long timeoutNanos;
    private final Cancel cancel; // null: none

    private ScheduleOptions(long timeoutNanos, Cancel cancel) {
        this.timeoutNanos = timeoutNanos;
        this.cancel = cancel;
    }

    /** The longest wait for a place in the queue; zero: the coordinator's; negative: no limit. */
    public ScheduleOptions timeout(Duration timeout) {
        return new ScheduleOptions(Durations.nanos(timeout, "timeout"), cancel);
    }

    /** What ends the wait, with CANCELLED; the closure goes on once it is scheduled. */
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
