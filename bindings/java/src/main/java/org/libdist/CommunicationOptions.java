// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Optional;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_communication_options;

/** Specifies how collectives communicate. Immutable: each method returns a new set of options. */
public final class CommunicationOptions {
    /** Options in which nothing is set. */
    public static final CommunicationOptions DEFAULT = new CommunicationOptions(0, null);

    private final long bytesPerPack;
    private final Duration timeout; // null: not set

    private CommunicationOptions(long bytesPerPack, Duration timeout) {
        this.bytesPerPack = bytesPerPack;
        this.timeout = timeout;
    }

    /** Sets the approximate size of the packs into which a planned list is split; 0 means not set. */
    public CommunicationOptions bytesPerPack(long bytesPerPack) {
        return new CommunicationOptions(bytesPerPack, timeout);
    }

    /** Sets the longest wait for a peer; null or zero means not set, and a negative value no limit. */
    public CommunicationOptions timeout(Duration timeout) {
        return new CommunicationOptions(bytesPerPack, timeout == null || timeout.isZero() ? null : timeout);
    }

    /** Returns the size of packs; 0 if it is not set. */
    public long bytesPerPack() {
        return bytesPerPack;
    }

    /** Returns the longest wait for a peer, if it is set. */
    public Optional<Duration> timeout() {
        return Optional.ofNullable(timeout);
    }

    /**
     * Returns these options, in which values that are set in {@code over} replace others. {@code over} may be
     * null.
     */
    public CommunicationOptions merge(CommunicationOptions over) {
        try (Uses uses = new Uses()) {
            dist_communication_options out = DEFAULT.toNative(uses);
            DistModule.dist_communication_options_merge(
                    toNative(uses), over == null ? null : over.toNative(uses), out);
            return DEFAULT.bytesPerPack(out.getBytes_per_pack()).timeout(Duration.ofNanos(out.getTimeout_ns()));
        }
    }

    @Override
    public String toString() {
        return "CommunicationOptions[bytesPerPack=" + bytesPerPack + ", timeout=" + timeout + "]";
    }

    dist_communication_options toNative(Uses uses) {
        dist_communication_options options = new dist_communication_options();
        uses.defer(options::delete);
        options.setBytes_per_pack(bytesPerPack);
        if (timeout != null) {
            options.setTimeout_ns(Durations.nanos(timeout, "timeout"));
        }
        return options;
    }
}
