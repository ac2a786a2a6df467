// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The kind of a failure. The numbers are those of libdist, Abseil and gRPC. */
public enum Status {
    /** No failure. */
    OK(0),
    /** {@link Strategy#cancel} was called, or the thread that runs was interrupted. */
    CANCELLED(1),
    /** A function of your own failed. */
    UNKNOWN(2),
    /** An argument is invalid, whatever the state of the object. */
    INVALID_ARGUMENT(3),
    /** A peer did not arrive, or the run did not end, in time. */
    DEADLINE_EXCEEDED(4),
    /** No such key, name or file. */
    NOT_FOUND(5),
    /** The name is already in use. */
    ALREADY_EXISTS(6),
    /** The operating system denied access. */
    PERMISSION_DENIED(7),
    /** Out of memory, or a thread could not be created. */
    RESOURCE_EXHAUSTED(8),
    /** Not allowed now: closed, its run has ended, or in the other context. */
    FAILED_PRECONDITION(9),
    /** A peer failed first; the report names it. */
    ABORTED(10),
    /** Past the end: a source or a file has no more elements. */
    OUT_OF_RANGE(11),
    /** Not supported by this strategy, dtype or build. */
    UNIMPLEMENTED(12),
    /** A bug in libdist: please report it. */
    INTERNAL(13),
    /** A worker or service cannot be reached. */
    UNAVAILABLE(14),
    /** A file or message is truncated or corrupt. */
    DATA_LOSS(15);

    final int code;

    Status(int code) {
        this.code = code;
    }

    /** Numbers of later versions count as INTERNAL. */
    static Status of(int code) {
        return switch (code) {
            case 0 -> OK;
            case 1 -> CANCELLED;
            case 2 -> UNKNOWN;
            case 3 -> INVALID_ARGUMENT;
            case 4 -> DEADLINE_EXCEEDED;
            case 5 -> NOT_FOUND;
            case 6 -> ALREADY_EXISTS;
            case 7 -> PERMISSION_DENIED;
            case 8 -> RESOURCE_EXHAUSTED;
            case 9 -> FAILED_PRECONDITION;
            case 10 -> ABORTED;
            case 11 -> OUT_OF_RANGE;
            case 12 -> UNIMPLEMENTED;
            case 13 -> INTERNAL;
            case 14 -> UNAVAILABLE;
            case 15 -> DATA_LOSS;
            default -> INTERNAL;
        };
    }

    /** The number in libdist. */
    public int code() {
        return code;
    }
}
