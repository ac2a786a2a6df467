// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_communication_options;

/** How a program asks its collectives to be done. Immutable: each method gives another set of options. */
public final class CommunicationOptions {
    /** Nothing is asked for. */
    public static final CommunicationOptions DEFAULT = new CommunicationOptions(Communication.AUTO, 0, null);

    private final Communication implementation;
    private final long bytesPerPack;
    private final Duration timeout; // null: not given

    private CommunicationOptions(Communication implementation, long bytesPerPack, Duration timeout) {
        this.implementation = implementation;
        this.bytesPerPack = bytesPerPack;
        this.timeout = timeout;
    }

    /** By which implementation. */
    public CommunicationOptions implementation(Communication implementation) {
        return new CommunicationOptions(
                Objects.requireNonNull(implementation, "implementation"), bytesPerPack, timeout);
    }

    /** A planned list is cut into packs of about this size; 0: not given. */
    public CommunicationOptions bytesPerPack(long bytesPerPack) {
        return new CommunicationOptions(implementation, bytesPerPack, timeout);
    }

    /** The longest wait for a peer; zero or negative: no limit. */
    public CommunicationOptions timeout(Duration timeout) {
        return new CommunicationOptions(implementation, bytesPerPack, timeout);
    }

    /** By which implementation. */
    public Communication implementation() {
        return implementation;
    }

    /** The size of packs; 0: not given. */
    public long bytesPerPack() {
        return bytesPerPack;
    }

    /** The longest wait for a peer, where it is given. */
    public Optional<Duration> timeout() {
        return Optional.ofNullable(timeout);
    }

    /** These options, overridden by what others give; null: none. */
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

    /** As TensorFlow prints them: "Options(bytes_per_pack=0,timeout_seconds=None,implementation=...)". */
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
