// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/** The library itself. */
public final class Dist {
    private Dist() {}

    /** The version that runs: major * 10000 + minor * 100 + patch. */
    public static int version() {
        return DistModule.dist_version();
    }

    /**
     * Returns whether this process can use an optional feature: "numa", "pinning", "isal", "grpc" or "gloo". For the last
     * two it loads the library, which stays in the process.
     */
    public static boolean hasFeature(String name) {
        return DistModule.dist_has_feature(Texts.bytes(name, "name")) != 0;
    }

    /** A status number as a word; "UNKNOWN_STATUS" for one that this version does not have. */
    public static String statusName(int code) {
        return Texts.of(DistModule.dist_status_name(code));
    }

    /** A device's name in full; what {@code name} leaves out is as in CPU:0. */
    public static String canonicalDevice(String name) {
        byte[] out = new byte[CrossReplica.NAME_BYTES];
        DistModule.dist_canonical_device(Texts.bytes(name, "name"), out, out.length);
        return Texts.written(out);
    }

    /**
     * The sizes of the pieces that one of several workers, with so many replicas each, cuts its batches to.
     */
    public static long[] batchSizesForWorker(
            long globalBatchSize, int numWorkers, int numReplicasPerWorker, int worker) {
        long count = (long) numWorkers * numReplicasPerWorker;
        long[] sizes = new long[count < 0 || count > Integer.MAX_VALUE ? 0 : (int) count];
        DistModule.dist_batch_sizes_for_worker(
                globalBatchSize, numWorkers, numReplicasPerWorker, worker, sizes, sizes.length);
        return sizes;
    }
}
