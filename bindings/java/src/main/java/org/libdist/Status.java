// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/** What kind of failure an exception is; the numbers are those of libdist, Abseil and gRPC. */
public enum Status {
    /** No failure. */
    OK,
    /** {@link Strategy#cancel} was called, or the thread that runs was interrupted. */
    CANCELLED,
    /** A function of the program's failed. */
    UNKNOWN,
    /** The arguments are wrong whatever the state. */
    INVALID_ARGUMENT,
    /** A peer did not arrive, or the run did not end, in time. */
    DEADLINE_EXCEEDED,
    /** No such key, name or file. */
    NOT_FOUND,
    /** A name is taken. */
    ALREADY_EXISTS,
    /** The system refuses. */
    PERMISSION_DENIED,
    /** No memory, or no thread could be made. */
    RESOURCE_EXHAUSTED,
    /** Right arguments, wrong moment: what is used is closed, or its run has ended. */
    FAILED_PRECONDITION,
    /** A peer failed first; the report names it. */
    ABORTED,
    /** Past the end. */
    OUT_OF_RANGE,
    /** Not offered by this strategy, dtype or build. */
    UNIMPLEMENTED,
    /** A defect of libdist: please report it. */
    INTERNAL,
    /** A worker or service cannot be reached. */
    UNAVAILABLE,
    /** A file or message is cut short or corrupt. */
    DATA_LOSS;

    private static final Status[] BY_CODE = values();

    /** The number in libdist. */
    public int code() {
        return ordinal();
    }

    /** A number from a later version counts as INTERNAL, as the C header says. */
    static Status of(int code) {
        return code >= 0 && code < BY_CODE.length ? BY_CODE[code] : INTERNAL;
    }
}
