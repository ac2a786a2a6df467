// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.TimeUnit;

/** Converts durations to nanoseconds for native code. */
final class Durations {
    static final long NO_TIMEOUT_NANOS = -1;
    /** 146 years, which can be added to any clock reading without an overflow. */
    private static final long LONGEST_NANOS = Long.MAX_VALUE / 2;

    private Durations() {}

    /**
     * Converts a duration to nanoseconds. Durations above 146 years count as 146 years, to avoid an overflow. A negative
     * duration means no timeout.
     *
     * @param name the name of the argument, for the exception if it is null
     */
    static long nanos(Duration duration, String name) {
        long nanos = TimeUnit.NANOSECONDS.convert(Objects.requireNonNull(duration, name));
        return Math.max(Math.min(nanos, LONGEST_NANOS), NO_TIMEOUT_NANOS);
    }
}
