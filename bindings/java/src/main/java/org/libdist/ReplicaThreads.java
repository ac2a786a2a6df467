// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The threads that run the replicas. */
public enum ReplicaThreads {
    /** run()'s caller is replica 0; the others are library threads. */
    CALLER(0),
    /** All are library threads; run()'s caller waits. */
    LIBRARY(1),
    /** None: the program's own threads come in by {@link Strategy#enter}. */
    HOST(2);

    final int code;

    ReplicaThreads(int code) {
        this.code = code;
    }

    static ReplicaThreads of(int code) {
        return switch (code) {
            case 0 -> CALLER;
            case 1 -> LIBRARY;
            case 2 -> HOST;
            default -> throw new DistException(Status.INTERNAL, "ReplicaThreads: libdist gave " + code);
        };
    }
}
