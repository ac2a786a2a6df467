// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_communication_options;

/** Specifies how collectives communicate. Immutable: each method returns a new set of options. */
public final class CommunicationOptions {
    /** Options in which nothing is set. */
    public static final CommunicationOptions DEFAULT = new CommunicationOptions(Communication.AUTO, 0, null);

    private final Communication implementation;
    private final long bytesPerPack;
    private final Duration timeout; // null: not given

    private CommunicationOptions(Communication implementation, long bytesPerPack, Duration timeout) {
        this.implementation = implementation;
        this.bytesPerPack = bytesPerPack;
        this.timeout = timeout;
    }

    /** Sets the implementation. */
    public CommunicationOptions implementation(Communication implementation) {
        return new CommunicationOptions(
                Objects.requireNonNull(implementation, "implementation"), bytesPerPack, timeout);
    }

    /** Sets the approximate size of the packs into which a planned list is split; 0 means not set. */
    public CommunicationOptions bytesPerPack(long bytesPerPack) {
        return new CommunicationOptions(implementation, bytesPerPack, timeout);
    }

    /** Sets the longest wait for a peer; zero or a negative value means no limit. */
    public CommunicationOptions timeout(Duration timeout) {
        return new CommunicationOptions(implementation, bytesPerPack, timeout);
    }

    /** Returns the implementation. */
    public Communication implementation() {
        return implementation;
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
            boolean given = out.getHas_timeout() != 0 || out.getTimeout_ns() != 0;
            return new CommunicationOptions(Communication.of(out.getImplementation()),
                    out.getBytes_per_pack(), given ? Duration.ofNanos(out.getTimeout_ns()) : null);
        }
    }

    /**
     * Returns the options in TensorFlow's format:
     * "Options(bytes_per_pack=0,timeout_seconds=None,implementation=...)".
     */
    public String describe() {
        try (Uses uses = new Uses()) {
            byte[] text = new byte[CrossReplica.NAME_BYTES];
            DistModule.dist_communication_options_describe(toNative(uses), text, text.length);
            return Texts.written(text);
        }
    }

    @Override
    public String toString() {
        return describe();
    }

    dist_communication_options toNative(Uses uses) {
        dist_communication_options options = new dist_communication_options();
        uses.defer(options::delete);
        options.setImplementation(implementation.code);
        options.setBytes_per_pack(bytesPerPack);
        if (timeout != null) {
            options.setTimeout_ns(Durations.nanos(timeout, "timeout"));
            options.setHas_timeout(1);
        }
        return options;
    }
}
