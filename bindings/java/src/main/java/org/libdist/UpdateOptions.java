// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.dist_update_options;

/** Options of {@link Variable#update}. Immutable: each method returns a new set of options. */
public final class UpdateOptions {
    /** The default options: merged results, and one call after another. */
    public static final UpdateOptions DEFAULT = new UpdateOptions(false, false);

    private final boolean ungrouped;
    private final boolean parallel;

    private UpdateOptions(boolean ungrouped, boolean parallel) {
        this.ungrouped = ungrouped;
        this.parallel = parallel;
    }

    /** Sets whether each leaf of the result is a tuple of the results of all calls. */
    public UpdateOptions ungrouped(boolean ungrouped) {
        return new UpdateOptions(ungrouped, parallel);
    }

    /** Sets whether several calls can run at the same time. Otherwise they run in turn, on the calling thread. */
    public UpdateOptions parallel(boolean parallel) {
        return new UpdateOptions(ungrouped, parallel);
    }

    dist_update_options toNative(Uses uses) {
        dist_update_options options = new dist_update_options();
        uses.defer(options::delete);
        options.setUngrouped(ungrouped ? 1 : 0);
        options.setParallel(parallel ? 1 : 0);
        return options;
    }
}
