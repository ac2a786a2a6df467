// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import org.libdist.internal.dist_run_options;

/** Rare choices for a run. Immutable: each method gives another set of options. */
public final class RunOptions {
    /** No bound on the time. */
    public static final RunOptions DEFAULT = new RunOptions(0, 0, 0);

    private final long timeoutNanos;
    private final int dynamicBatchSize;
    private final int bucketizing;

    private RunOptions(long timeoutNanos, int dynamicBatchSize, int bucketizing) {
        this.timeoutNanos = timeoutNanos;
        this.dynamicBatchSize = dynamicBatchSize;
        this.bucketizing = bucketizing;
    }

    /** A bound on the whole run; zero: none. */
    public RunOptions timeout(Duration timeout) {
        return new RunOptions(timeout.toNanos(), dynamicBatchSize, bucketizing);
    }

    /** TensorFlow's, accepted without effect: every size may differ from run to run. */
    public RunOptions enableDynamicBatchSize(boolean enabled) {
        return new RunOptions(timeoutNanos, enabled ? 1 : -1, bucketizing);
    }

    /** TensorFlow's, accepted without effect. */
    public RunOptions bucketizingDynamicShape(boolean enabled) {
        return new RunOptions(timeoutNanos, dynamicBatchSize, enabled ? 1 : 0);
    }

    long timeoutNanos() {
        return timeoutNanos;
    }

    dist_run_options toNative(Uses uses) {
        dist_run_options options = new dist_run_options();
        uses.defer(options::delete);
        options.setTimeout_ns(timeoutNanos);
        options.setEnable_dynamic_batch_size(dynamicBatchSize);
        options.setBucketizing_dynamic_shape(bucketizing);
        return options;
    }
}
