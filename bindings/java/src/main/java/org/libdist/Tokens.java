// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.List;

/** The functions of the program that native options refer to, registered until {@link #end}. */
final class Tokens {
    private record Entry(long token, Target target) {}

    private List<Entry> entries = List.of();

    /** Registers a function and returns its token. */
    long add(Target target) {
        if (entries.isEmpty()) {
            entries = new ArrayList<>(1);
        }
        entries.add(new Entry(Upcalls.register(target), target));
        return entries.get(entries.size() - 1).token;
    }

    boolean isEmpty() {
        return entries.isEmpty();
    }

    /** Returns the functions of a class. */
    <T extends Target> List<T> of(Class<T> type) {
        return entries.stream().map(Entry::target).filter(type::isInstance).map(type::cast).toList();
    }

    /** Unregisters the functions. Without functions, it does not load native code. */
    void end() {
        entries.forEach(entry -> Upcalls.unregister(entry.token));
    }

    /** Returns what a function threw that the report describes; otherwise the report. */
    Throwable cause(DistException report) {
        for (Entry entry : entries) {
            Throwable cause = entry.target.cause(report);
            if (cause != report) {
                return cause;
            }
        }
        return report;
    }

    /** Throws what a function threw that returns no status to libdist. */
    void check() {
        entries.forEach(entry -> entry.target.check());
    }
}
