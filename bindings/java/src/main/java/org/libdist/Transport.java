// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/**
 * The transport between workers that are separate processes; workers.h lists the environment variables
 * for it. Link modules have further values: dist/experimental/links.h.
 */
public enum Transport {
    /**
     * The one named by DIST_TRANSPORT; else GRPC, or NONE for host names without TLS and DIST_PLAINTEXT.
     * If none is named, workers of one machine and user exchange data through shared memory.
     */
    AUTO(0x700),
    /** No transport: the first call that needs another worker fails with UNAVAILABLE. */
    NONE(0x701),
    /** Over gRPC, between the addresses in the cluster, also within one machine. */
    GRPC(0x702),
    /** Control over gRPC, data over Gloo: not encrypted, on additional ports. */
    GLOO(0x703);

    final int code;

    Transport(int code) {
        this.code = code;
    }

    static Transport of(int code) {
        return switch (code) {
            case 0x700 -> AUTO;
            case 0x701 -> NONE;
            case 0x702 -> GRPC;
            case 0x703 -> GLOO;
            default -> throw new DistException(Status.INTERNAL, "Transport: libdist gave " + code);
        };
    }
}
