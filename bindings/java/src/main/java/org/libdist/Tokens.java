// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.List;

/**
 * The functions of the program that native options refer to, registered until {@link #end}. Each collective with
 * options has one, so nothing is allocated, and no native code is loaded, until there is a function.
 */
final class Tokens {
    private record Entry(long token, Target target) {}

    private List<Entry> entries; // null: none

    /** Registers a function and returns its token. */
    long add(Target target) {
        if (entries == null) {
            entries = new ArrayList<>(1);
        }
        long token = Upcalls.register(target);
        entries.add(new Entry(token, target));
        return token;
    }

    boolean isEmpty() {
        return entries == null;
    }

    /** Unregisters the functions. */
    void end() {
        if (entries != null) {
            entries.forEach(entry -> Upcalls.unregister(entry.token));
        }
    }

    /** Returns what a function threw that the report describes; otherwise the report. */
    Throwable cause(DistException report) {
        if (entries != null) {
            for (Entry entry : entries) {
                Throwable cause = entry.target.cause(report);
                if (cause != report) {
                    return cause;
                }
            }
        }
        return report;
    }

    /** Throws what a function threw that returns no status to libdist. */
    void check() {
        if (entries != null) {
            entries.forEach(entry -> entry.target.check());
        }
    }

    /** Returns whether a partitioner is running. */
    boolean isPartitioning() {
        return entries != null
                && entries.stream().anyMatch(entry -> entry.target instanceof PartitionTarget target && target.runs());
    }
}
