// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The first term of a scan. */
public enum ScanKind {
    /** The result of replica r includes its own contribution. */
    INCLUSIVE(0x400),
    /** The result of replica r covers replicas 0 .. r-1 only. */
    EXCLUSIVE(0x401);

    final int code;

    ScanKind(int code) {
        this.code = code;
    }

    static ScanKind of(int code) {
        return switch (code) {
            case 0x400 -> INCLUSIVE;
            case 0x401 -> EXCLUSIVE;
            default -> throw new DistException(Status.INTERNAL, "ScanKind: libdist gave " + code);
        };
    }
}
