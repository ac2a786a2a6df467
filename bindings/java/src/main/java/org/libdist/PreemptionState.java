// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The state of a preemption; see {@link PreemptionHandler#saveIfPreempted}. */
public enum PreemptionState {
    /** No notice has been given. */
    NONE(0x1A00),
    /** The checkpoint is saved; the job continues until the grace period ends. */
    SAVED(0x1A01),
    /** The checkpoint is saved for the last time: the job should end. */
    OVER(0x1A02);

    final int code;

    PreemptionState(int code) {
        this.code = code;
    }

    static PreemptionState of(int code) {
        return switch (code) {
            case 0x1A00 -> NONE;
            case 0x1A01 -> SAVED;
            case 0x1A02 -> OVER;
            default -> throw new DistException(Status.INTERNAL, "PreemptionState: libdist gave " + code);
        };
    }
}
