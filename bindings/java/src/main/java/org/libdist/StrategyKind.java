// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The kind of a strategy, which determines where values and variables are placed. */
public enum StrategyKind {
    /** R replicas; every variable has R equal copies. */
    MIRRORED(0),
    /** One replica, for programs that run on one or on many. */
    ONE_DEVICE(1),
    /** One replica; used by programs that do not choose a strategy. */
    DEFAULT(2),
    /** R replicas; every variable has one copy, which all replicas read. */
    CENTRAL_STORAGE(3),
    /** As MIRRORED, of replicas made of logical devices: see {@link StrategyOptions#deviceAssignment}. */
    MESH(4),
    /** Like MIRRORED, with replicas in all workers of a cluster. */
    MULTI_WORKER_MIRRORED(5),
    /** Variables on servers; a coordinator runs closures on workers. */
    PARAMETER_SERVER(6);

    final int code;

    StrategyKind(int code) {
        this.code = code;
    }

    static StrategyKind of(int code) {
        return switch (code) {
            case 0 -> MIRRORED;
            case 1 -> ONE_DEVICE;
            case 2 -> DEFAULT;
            case 3 -> CENTRAL_STORAGE;
            case 4 -> MESH;
            case 5 -> MULTI_WORKER_MIRRORED;
            case 6 -> PARAMETER_SERVER;
            default -> throw new DistException(Status.INTERNAL, "StrategyKind: libdist gave " + code);
        };
    }
}
