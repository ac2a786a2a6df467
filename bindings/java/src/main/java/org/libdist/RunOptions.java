// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import org.libdist.internal.dist_run_options;

/** Options of a run. Immutable: each method returns a new set of options. */
public final class RunOptions {
    /** The default options: no time limit. */
    public static final RunOptions DEFAULT = new RunOptions(0, 0, 0, null);

    private final long timeoutNanos;
    private final int dynamicBatchSize;
    private final int bucketizing;

    private final Cancel cancel; // null: none

    private RunOptions(long timeoutNanos, int dynamicBatchSize, int bucketizing, Cancel cancel) {
        this.timeoutNanos = timeoutNanos;
        this.dynamicBatchSize = dynamicBatchSize;
        this.bucketizing = bucketizing;
        this.cancel = cancel;
    }

    /** Sets the time limit from the call, including the wait for earlier runs; zero means none. */
    public RunOptions timeout(Duration timeout) {
        return new RunOptions(Durations.nanos(timeout, "timeout"), dynamicBatchSize, bucketizing, cancel);
    }

    /**
     * Accepted for compatibility with TensorFlow; has no effect, because every size may differ from run to
     * run.
     */
    public RunOptions enableDynamicBatchSize(boolean enabled) {
        return new RunOptions(timeoutNanos, enabled ? 1 : -1, bucketizing, cancel);
    }

    /** Accepted for compatibility with TensorFlow; has no effect. */
    public RunOptions bucketizingDynamicShape(boolean enabled) {
        return new RunOptions(timeoutNanos, dynamicBatchSize, enabled ? 1 : 0, cancel);
    }

    /** Sets an object that cancels only this run, queued or in progress. */
    public RunOptions cancel(Cancel cancel) {
        return new RunOptions(
                timeoutNanos, dynamicBatchSize, bucketizing, Objects.requireNonNull(cancel, "cancel"));
    }

    Cancel cancel() {
        return cancel;
    }

    long timeoutNanos() {
        return timeoutNanos;
    }

    /** Returns whether nothing but the cancel object differs from the defaults. */
    boolean isPlain() {
        return timeoutNanos == 0 && dynamicBatchSize == 0 && bucketizing == 0;
    }

    /** @param cancel the run's own */
    dist_run_options toNative(Uses uses, long cancel) {
        dist_run_options options = new dist_run_options();
        uses.defer(options::delete);
        options.setTimeout_ns(timeoutNanos);
        options.setCancel(cancel);
        options.setEnable_dynamic_batch_size(dynamicBatchSize);
        options.setBucketizing_dynamic_shape(bucketizing);
        return options;
    }
}
