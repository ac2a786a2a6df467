// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Rare choices for one collective. Immutable: make one outside the loop that uses it. */
public final class CollectiveOptions {
    /** No tag, the strategy's timeout. */
    public static final CollectiveOptions NONE = new CollectiveOptions(null, 0);

    final byte[] tag;
    final long timeoutNanos;

    private CollectiveOptions(byte[] tag, long timeoutNanos) {
        this.tag = tag;
        this.timeoutNanos = timeoutNanos;
    }

    /** With a name for reports; it must be equal on all replicas. */
    public static CollectiveOptions tag(String tag) {
        return new CollectiveOptions(tag.getBytes(StandardCharsets.UTF_8), 0);
    }

    /** These options, with a bound on the wait for a peer; zero: the strategy's, negative: no limit. */
    public CollectiveOptions timeout(Duration timeout) {
        return new CollectiveOptions(tag, timeout.toNanos());
    }
}
