// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** When a strategy's workers re-form, where some are lost or have come: {@link Strategy#reform()}. */
public enum Reform {
    /** When {@link Strategy#reform()} is called. */
    EXPLICIT(0),
    /** Also at the start of a run, if it is due. */
    AT_NEXT_RUN(1);

    final int code;

    Reform(int code) {
        this.code = code;
    }

    static Reform of(int code) {
        return switch (code) {
            case 0 -> EXPLICIT;
            case 1 -> AT_NEXT_RUN;
            default -> throw new DistException(Status.INTERNAL, "Reform: libdist gave " + code);
        };
    }
}
