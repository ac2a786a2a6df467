// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.dist_network_options;

/**
 * The rare choices of a network.
 *
 * @param creditBytes how far a worker may run ahead of each other one; 0: 1 MiB; else 4 KiB or more
 */
public record NetworkOptions(long creditBytes) {
    /** Those of libdist. */
    public static final NetworkOptions DEFAULT = new NetworkOptions(0);

    dist_network_options toNative(Uses uses) {
        dist_network_options options = new dist_network_options();
        uses.defer(options::delete);
        options.setCredit_bytes(creditBytes);
        return options;
    }
}
