// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/**
 * Limits how many threads several strategies use at the same time. Set it in {@link StrategyOptions#budget}
 * of each of them.
 *
 * <p>A run acquires as many threads as it has replicas that can run in parallel, or all threads of the budget
 * if that is more than the budget has. A request acquires one. If too few threads are free, the run or
 * request waits, up to its own timeout. All strategies share one queue in order of arrival. Calls from inside
 * a callback of libdist acquire no threads. A callback must not wait, with a lock of the program, for a run
 * or request that another thread has started. close() releases the budget; strategies that use it keep it.
 */
public final class Budget extends NativeObject {
    private Budget(long handle) {
        super(new Native("budget", handle, DistModule::dist_budget_destroy));
    }

    /** Creates a budget of the given number of threads. */
    public static Budget create(int threads) {
        long[] out = new long[1];
        DistModule.dist_budget_create(threads, out);
        return new Budget(out[0]);
    }
}
