// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The time at which workers re-form if some are lost or want to join; see {@link Strategy#reform()}. */
public enum Reform {
    /** When {@link Strategy#reform()} is called. */
    EXPLICIT(0x800),
    /** Also at the start of a run, if it is due. */
    AT_NEXT_RUN(0x801);

    final int code;

    Reform(int code) {
        this.code = code;
    }

    static Reform of(int code) {
        return switch (code) {
            case 0x800 -> EXPLICIT;
            case 0x801 -> AT_NEXT_RUN;
            default -> throw new DistException(Status.INTERNAL, "Reform: libdist gave " + code);
        };
    }
}
