// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.dist_network_options;

/** Options of a {@link Network}. Immutable: each method returns a new set of options. */
public final class NetworkOptions {
    /** The default options. */
    public static final NetworkOptions DEFAULT = new NetworkOptions(0);

    private final long creditBytes;

    private NetworkOptions(long creditBytes) {
        this.creditBytes = creditBytes;
    }

    /**
     * Sets how many bytes a worker may send ahead to each other worker, 4 KiB or more; 0 selects the default
     * (1 MiB).
     */
    public NetworkOptions creditBytes(long creditBytes) {
        return new NetworkOptions(creditBytes);
    }

    dist_network_options toNative(Uses uses) {
        dist_network_options options = new dist_network_options();
        uses.defer(options::delete);
        options.setCredit_bytes(creditBytes);
        return options;
    }
}
