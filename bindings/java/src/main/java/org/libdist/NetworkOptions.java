// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.dist_network_options;

/**
 * Options of a network.
 *
 * @param creditBytes bytes that a worker may send ahead to each other worker, 4 KiB or more; 0 selects the
 *         default (1 MiB)
 */
public record NetworkOptions(long creditBytes) {
    /** The default options. */
    public static final NetworkOptions DEFAULT = new NetworkOptions(0);

    dist_network_options toNative(Uses uses) {
        dist_network_options options = new dist_network_options();
        uses.defer(options::delete);
        options.setCredit_bytes(creditBytes);
        return options;
    }
}
