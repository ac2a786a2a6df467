// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/**
 * How a worker reaches those that are other processes; workers.h says what the environment has to do with
 * it.
 */
public enum Transport {
    /** As DIST_TRANSPORT in the environment says, else GRPC; or NONE where that cannot be had. */
    AUTO(0),
    /** Nothing leads to them: the first call that needs one is UNAVAILABLE. */
    NONE(1),
    /** GRPC, between the addresses of the cluster. */
    GRPC(2),
    /** The same, with data over Gloo: plain text, on further ports. */
    GLOO(3);

    final int code;

    Transport(int code) {
        this.code = code;
    }

    static Transport of(int code) {
        return switch (code) {
            case 0 -> AUTO;
            case 1 -> NONE;
            case 2 -> GRPC;
            case 3 -> GLOO;
            default -> throw new DistException(Status.INTERNAL, "Transport: libdist gave " + code);
        };
    }
}
