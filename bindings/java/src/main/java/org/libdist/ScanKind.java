// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The first term of a scan. */
public enum ScanKind {
    /** The result of replica r includes its own contribution. */
    INCLUSIVE(0),
    /** The result of replica r covers replicas 0 .. r-1 only. */
    EXCLUSIVE(1);

    final int code;

    ScanKind(int code) {
        this.code = code;
    }

    static ScanKind of(int code) {
        return switch (code) {
            case 0 -> INCLUSIVE;
            case 1 -> EXCLUSIVE;
            default -> throw new DistException(Status.INTERNAL, "ScanKind: libdist gave " + code);
        };
    }
}
