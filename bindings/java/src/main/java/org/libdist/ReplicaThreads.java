// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModuleConstants;

/** On which threads the replicas run. */
public enum ReplicaThreads {
    /** run()'s caller is replica 0; the others are library threads. */
    CALLER(DistModuleConstants.DIST_THREADS_CALLER),
    /** All are library threads; run()'s caller waits. */
    LIBRARY(DistModuleConstants.DIST_THREADS_LIBRARY),
    /** None: the program's own threads come in by {@link Strategy#enter}. */
    HOST(DistModuleConstants.DIST_THREADS_HOST);

    final int code;

    ReplicaThreads(int code) {
        this.code = code;
    }

    static ReplicaThreads of(int code) {
        for (ReplicaThreads each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new DistException(Status.INTERNAL, "ReplicaThreads: libdist gave " + code);
    }
}
