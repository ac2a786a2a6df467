// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * How often a replica was the last to come to the rounds of one tag, collective and group.
 *
 * @param collective at which
 * @param group which group of replicas met; 0: all
 * @param replica who; -1: the worker itself, outside of its replicas' functions
 * @param worker the replica's; 0 in a strategy of one process
 * @param rounds of this tag, collective and group, whoever was last
 * @param timesLast at least 1
 * @param meanLateNanos how long all others, all there, waited for it: the mean
 * @param maxLateNanos and the longest
 * @param tag "" where there was none
 */
public record Straggler(Collective collective, int group, int replica, int worker, long rounds, long timesLast,
        long meanLateNanos, long maxLateNanos, String tag) {}
