// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.List;
import org.libdist.internal.dist_devices_options;

/** Rare choices for {@link Replica#runOnDevices}. Immutable: each method gives another set of options. */
public final class DevicesOptions {
    /** No bound on the time; results belong together as fits. */
    public static final DevicesOptions DEFAULT = new DevicesOptions(0, List.of());

    private final long timeoutNanos;
    private final List<Partition> results;

    private DevicesOptions(long timeoutNanos, List<Partition> results) {
        this.timeoutNanos = timeoutNanos;
        this.results = results;
    }

    /** A bound on the whole run on devices; zero: none. */
    public DevicesOptions timeout(Duration timeout) {
        return new DevicesOptions(timeout.toNanos(), results);
    }

    /**
     * How results belong together: one partition for all leaves, or one for each in the order of the nest
     * (dictionaries by key). Their shapes are not read.
     */
    public DevicesOptions results(Partition... results) {
        return new DevicesOptions(timeoutNanos, List.of(results));
    }

    dist_devices_options toNative(Uses uses) {
        dist_devices_options options = new dist_devices_options();
        uses.defer(options::delete);
        options.setTimeout_ns(timeoutNanos);
        for (Partition result : results) {
            options.add_result(result.toNative(uses));
        }
        return options;
    }
}
