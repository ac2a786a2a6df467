// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/**
 * How many threads of several strategies work at the same time: {@link StrategyOptions#budget} of each of them.
 *
 * <p>A run takes as many as it has replicas that work side by side, or all where that is more; a request takes one. Where
 * too few are free they wait, first come, first served, whatever their strategy, within their own timeout. What begins
 * inside a function that libdist has called takes nothing. A function must not wait, by a lock of the program's, for a run
 * or a request that somebody else has begun. close() gives the budget up; strategies that have it keep it.
 */
public final class Budget extends NativeObject {
    /** Of that many threads. */
    public Budget(int threads) {
        super(new Native("budget", create(threads), DistModule::dist_budget_destroy));
    }

    private static long create(int threads) {
        long[] out = new long[1];
        DistModule.dist_budget_create(threads, out);
        return out[0];
    }
}
