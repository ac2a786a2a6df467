// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Counts how often a replica was the last one to arrive at the rounds of one tag, collective and group.
 *
 * @param collective the collective
 * @param group number of the group of replicas; 0 for all replicas
 * @param replica id of the replica; -1 for the worker itself, outside replica functions
 * @param worker worker of the replica; 0 in a strategy of one process
 * @param rounds number of rounds of this tag, collective and group
 * @param timesLast rounds in which this replica was last; at least 1
 * @param meanLateNanos mean time for which all others, already present, waited for it, in nanoseconds
 * @param maxLateNanos longest such time, in nanoseconds
 * @param tag "" if there is no tag
 */
public record Straggler(Collective collective, int group, int replica, int worker, long rounds, long timesLast,
        long meanLateNanos, long maxLateNanos, String tag) {}
