// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** Where a scan begins. */
public enum ScanKind {
    /** Replica r's own contribution is in its result. */
    INCLUSIVE(0),
    /** Only those of replicas 0 .. r-1 are. */
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
