// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import org.libdist.internal.DistModule;

/** Functions of the library as a whole. */
public final class Dist {
    private Dist() {}

    /** Returns the version of the loaded library: major * 10000 + minor * 100 + patch. */
    public static int version() {
        return DistModule.dist_version();
    }

    /**
     * Returns whether this process can use an optional feature: "numa", "pinning", "isal", "grpc" or "gloo".
     * For "grpc" and "gloo" it loads a library, which stays in the process.
     */
    public static boolean hasFeature(String name) {
        return DistModule.dist_has_feature(Texts.bytes(name, "name")) != 0;
    }

    /** Returns the name of a status number; "UNKNOWN_STATUS" if this version does not know it. */
    public static String statusName(int code) {
        return Texts.of(DistModule.dist_status_name(code));
    }

    /**
     * Returns the full form of a device name. Parts that {@code name} omits are taken from the full name of
     * CPU:0.
     */
    public static String canonicalDevice(String name) {
        byte[] out = new byte[CrossReplica.NAME_BYTES];
        DistModule.dist_canonical_device(Texts.bytes(name, "name"), out, out.length);
        return Texts.written(out);
    }

    /**
     * Returns the sizes of the pieces into which one of several workers, with the given number of replicas
     * each, splits its batches.
     */
    public static long[] batchSizesForWorker(
            long globalBatchSize, int numWorkers, int numReplicasPerWorker, int worker) {
        long count = (long) numWorkers * numReplicasPerWorker;
        long[] sizes = new long[count < 0 || count > Integer.MAX_VALUE ? 0 : (int) count];
        DistModule.dist_batch_sizes_for_worker(
                globalBatchSize, numWorkers, numReplicasPerWorker, worker, sizes, sizes.length);
        return sizes;
    }

    /**
     * Returns what libdist finds on this machine: the object that {@code dist-info --json} prints.
     *
     * <p>Starts the program dist-info of the jar. If this process has loaded libdist from elsewhere, it starts
     * the one beside that library or in PATH, and throws NOT_FOUND if there is none.
     */
    public static Info info() {
        return InfoProgram.read(List.of("--json"));
    }

    /**
     * Like {@link #info}, and checks whether a job can run in this environment. {@link Info#isOk} returns false
     * if it has found a problem. The key "check" has the findings, which include a trial with two processes.
     */
    public static Info check() {
        return InfoProgram.read(List.of("--json", "--check"));
    }
}
