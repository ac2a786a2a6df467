// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/** What kind of failure an exception is; the numbers are those of libdist, Abseil and gRPC. */
public enum Status {
    OK(0),
    CANCELLED(1),
    UNKNOWN(2),
    INVALID_ARGUMENT(3),
    DEADLINE_EXCEEDED(4),
    NOT_FOUND(5),
    ALREADY_EXISTS(6),
    PERMISSION_DENIED(7),
    RESOURCE_EXHAUSTED(8),
    FAILED_PRECONDITION(9),
    ABORTED(10),
    OUT_OF_RANGE(11),
    UNIMPLEMENTED(12),
    INTERNAL(13),
    UNAVAILABLE(14),
    DATA_LOSS(15);

    private static final Status[] BY_CODE = values();
    private final int code;

    Status(int code) {
        this.code = code;
    }

    /** The number in libdist. */
    public int code() {
        return code;
    }

    /** A number from a later version counts as INTERNAL, as the C header says. */
    static Status of(int code) {
        return code >= 0 && code < BY_CODE.length ? BY_CODE[code] : INTERNAL;
    }
}
