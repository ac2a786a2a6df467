// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.TimeUnit;

/** Converts durations to nanoseconds for native code. */
final class Durations {
    /** 146 years, which can be added to any clock reading without an overflow. */
    private static final long LONGEST_NANOS = Long.MAX_VALUE / 2;

    private Durations() {}

    /**
     * What is longer than any program runs counts as 146 years, and so does not overflow.
     *
     * @param name the argument's, for who gave null
     */
    static long nanos(Duration duration, String name) {
        long nanos = TimeUnit.NANOSECONDS.convert(Objects.requireNonNull(duration, name));
        return Math.max(Math.min(nanos, LONGEST_NANOS), -LONGEST_NANOS);
    }
}
