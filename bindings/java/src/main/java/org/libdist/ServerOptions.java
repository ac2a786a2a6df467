// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import org.libdist.internal.dist_server_options;

/** Options of a {@link Server}. Immutable: each method returns a new set of options. */
public final class ServerOptions {
    /** The default options. */
    public static final ServerOptions DEFAULT = new ServerOptions(0, null, 0, 0);

    private final int numThreads;
    private final String bindAddress; // null: libdist's choice
    private final long startTimeoutNanos;
    private final long maxMessageBytes;

    private ServerOptions(int numThreads, String bindAddress, long startTimeoutNanos, long maxMessageBytes) {
        this.numThreads = numThreads;
        this.bindAddress = bindAddress;
        this.startTimeoutNanos = startTimeoutNanos;
        this.maxMessageBytes = maxMessageBytes;
    }

    /** Sets how many closures a worker runs at the same time; 0 selects the default (1). */
    public ServerOptions numThreads(int numThreads) {
        return new ServerOptions(numThreads, bindAddress, startTimeoutNanos, maxMessageBytes);
    }

    /**
     * Sets the address to listen on. Without it, DIST_BIND_ADDRESS is used, or else the port of the task's address in
     * the cluster, on all interfaces unless that address is localhost or a loopback address.
     */
    public ServerOptions bindAddress(String bindAddress) {
        Objects.requireNonNull(bindAddress, "bindAddress");
        return new ServerOptions(numThreads, bindAddress, startTimeoutNanos, maxMessageBytes);
    }

    /**
     * Sets how long {@link Server#join} waits for a coordinator to connect; zero selects the default (600 s),
     * and a negative value means no limit.
     */
    public ServerOptions startTimeout(Duration startTimeout) {
        return new ServerOptions(numThreads, bindAddress, Durations.nanos(startTimeout, "startTimeout"), maxMessageBytes);
    }

    /**
     * Sets the maximum size of a message, and so of one part of a variable; 0 selects the default (1 GiB).
     */
    public ServerOptions maxMessageBytes(long maxMessageBytes) {
        return new ServerOptions(numThreads, bindAddress, startTimeoutNanos, maxMessageBytes);
    }

    dist_server_options toNative(Uses uses) {
        dist_server_options options = new dist_server_options();
        uses.defer(options::delete);
        options.setNum_threads(numThreads);
        if (bindAddress != null) {
            options.setBind_address(Texts.bytes(bindAddress));
        }
        options.setStart_timeout_ns(startTimeoutNanos);
        options.setMax_message_bytes(maxMessageBytes);
        return options;
    }
}
