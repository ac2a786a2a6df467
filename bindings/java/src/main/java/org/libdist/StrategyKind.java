// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The kind of a strategy, which determines where values and variables are placed. */
public enum StrategyKind {
    /** R replicas; every variable has R equal copies. */
    MIRRORED(0x500),
    /** One replica, for programs that run on one or on many. */
    ONE_DEVICE(0x501),
    /** One replica; used by programs that do not choose a strategy. */
    DEFAULT(0x502),
    /** R replicas; every variable has one copy, which all replicas read. */
    CENTRAL_STORAGE(0x503),
    /** Like MIRRORED; replicas consist of logical devices: see {@link StrategyOptions#deviceAssignment}. */
    MESH(0x504),
    /** Like MIRRORED, with replicas in all workers of a cluster. */
    MULTI_WORKER_MIRRORED(0x505),
    /** Variables on servers; a coordinator runs closures on workers. */
    PARAMETER_SERVER(0x506);

    final int code;

    StrategyKind(int code) {
        this.code = code;
    }

    static StrategyKind of(int code) {
        return switch (code) {
            case 0x500 -> MIRRORED;
            case 0x501 -> ONE_DEVICE;
            case 0x502 -> DEFAULT;
            case 0x503 -> CENTRAL_STORAGE;
            case 0x504 -> MESH;
            case 0x505 -> MULTI_WORKER_MIRRORED;
            case 0x506 -> PARAMETER_SERVER;
            default -> throw new DistException(Status.INTERNAL, "StrategyKind: libdist gave " + code);
        };
    }
}
