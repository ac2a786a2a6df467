// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import org.libdist.internal.dist_devices_options;

/** Options of {@link Replica#runOnDevices}. Immutable: each method returns a new set of options. */
public final class DevicesOptions {
    /**
     * The default options: no time limit, and results are joined as {@link Replica#runOnDevices} describes.
     */
    public static final DevicesOptions DEFAULT = new DevicesOptions(0, List.of(), null);

    private final long timeoutNanos;
    private final List<Partition> results;

    private final Cancel cancel; // null: none

    private DevicesOptions(long timeoutNanos, List<Partition> results, Cancel cancel) {
        this.timeoutNanos = timeoutNanos;
        this.results = results;
        this.cancel = cancel;
    }

    /** Sets the time limit of the whole run on devices; zero means none. */
    public DevicesOptions timeout(Duration timeout) {
        return new DevicesOptions(Durations.nanos(timeout, "timeout"), results, cancel);
    }

    /**
     * Sets how the devices' results are joined: one partition for all leaves, or one for each leaf in the
     * order of the nest (dictionaries by key). The shape of a partition is ignored.
     */
    public DevicesOptions results(Partition... results) {
        return new DevicesOptions(timeoutNanos, List.of(Objects.requireNonNull(results, "results")), cancel);
    }

    /** Sets an object that cancels only this run on devices. */
    public DevicesOptions cancel(Cancel cancel) {
        return new DevicesOptions(timeoutNanos, results, Objects.requireNonNull(cancel, "cancel"));
    }

    Cancel cancel() {
        return cancel;
    }

    /** @param cancel the run's own */
    dist_devices_options toNative(Uses uses, long cancel) {
        dist_devices_options options = new dist_devices_options();
        uses.defer(options::delete);
        options.setTimeout_ns(timeoutNanos);
        options.setCancel(cancel);
        for (Partition result : results) {
            options.add_result(result.toNative(uses));
        }
        return options;
    }
}
