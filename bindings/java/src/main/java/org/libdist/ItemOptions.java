// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Executor;

/** Options of {@link Batcher#submit}. Immutable: each method returns a new set of options. */
public final class ItemOptions {
    /** The default options: those of {@link SubmitOptions#DEFAULT}, length 0 and 0 bytes. */
    public static final ItemOptions DEFAULT = new ItemOptions(SubmitOptions.DEFAULT, 0, 0);

    private final SubmitOptions request;
    private final long length;
    private final long bytes;

    private ItemOptions(SubmitOptions request, long length, long bytes) {
        this.request = request;
        this.length = length;
        this.bytes = bytes;
    }

    /**
     * Sets the priority, {@link SubmitOptions#PRIORITY_MIN} to {@link SubmitOptions#PRIORITY_MAX}. Higher
     * priorities run first.
     */
    public ItemOptions priority(int priority) {
        return new ItemOptions(request.priority(priority), length, bytes);
    }

    /** Sets the time limit from now to completion; zero means none. */
    public ItemOptions timeout(Duration timeout) {
        return new ItemOptions(request.timeout(timeout), length, bytes);
    }

    /** Sets an object that cancels this item. */
    public ItemOptions cancel(Cancel cancel) {
        return new ItemOptions(request.cancel(Objects.requireNonNull(cancel, "cancel")), length, bytes);
    }

    /** Sets the executor that completes the future; see {@link SubmitOptions#executor}. */
    public ItemOptions executor(Executor executor) {
        return new ItemOptions(request.executor(executor), length, bytes);
    }

    /** Sets the length, which selects the bucket: 0 to the last of {@link BatcherOptions#buckets}. */
    public ItemOptions length(long length) {
        return new ItemOptions(request, length, bytes);
    }

    /** Sets the size that counts towards {@link BatcherOptions#maxBytes}. */
    public ItemOptions bytes(long bytes) {
        return new ItemOptions(request, length, bytes);
    }

    SubmitOptions request() {
        return request;
    }

    long length() {
        return length;
    }

    long bytes() {
        return bytes;
    }
}
