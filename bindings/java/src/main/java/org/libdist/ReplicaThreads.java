// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The threads that run the replicas. */
public enum ReplicaThreads {
    /** run()'s caller is replica 0; the others are library threads. */
    CALLER(0x600),
    /** All are library threads; run()'s caller waits. */
    LIBRARY(0x601),
    /** Your own threads enter with {@link Strategy#enter}. */
    HOST(0x602);

    final int code;

    ReplicaThreads(int code) {
        this.code = code;
    }

    static ReplicaThreads of(int code) {
        return switch (code) {
            case 0x600 -> CALLER;
            case 0x601 -> LIBRARY;
            case 0x602 -> HOST;
            default -> throw new DistException(Status.INTERNAL, "ReplicaThreads: libdist gave " + code);
        };
    }
}
