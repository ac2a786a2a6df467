// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Executor;

/** Rare choices for an item: {@link Batcher#submit}. Immutable: each method gives another set of options. */
public final class ItemOptions {
    /** As {@link SubmitOptions#DEFAULT}, of length 0 and without bytes. */
    public static final ItemOptions DEFAULT = new ItemOptions(SubmitOptions.DEFAULT, 0, 0);

    private final SubmitOptions request;
    private final long length;
    private final long bytes;

    private ItemOptions(SubmitOptions request, long length, long bytes) {
        this.request = request;
        this.length = length;
        this.bytes = bytes;
    }

    /** {@link SubmitOptions#PRIORITY_MIN} to {@link SubmitOptions#PRIORITY_MAX}: the greater comes first. */
    public ItemOptions priority(int priority) {
        return new ItemOptions(request.priority(priority), length, bytes);
    }

    /** Until the item's end, from now; zero: none. */
    public ItemOptions timeout(Duration timeout) {
        return new ItemOptions(request.timeout(timeout), length, bytes);
    }

    /** What ends this item, with CANCELLED. */
    public ItemOptions cancel(Cancel cancel) {
        return new ItemOptions(request.cancel(Objects.requireNonNull(cancel, "cancel")), length, bytes);
    }

    /** As {@link SubmitOptions#executor}. */
    public ItemOptions executor(Executor executor) {
        return new ItemOptions(request.executor(executor), length, bytes);
    }

    /** Decides the bucket: 0 to the last of {@link BatcherOptions#buckets}. */
    public ItemOptions length(long length) {
        return new ItemOptions(request, length, bytes);
    }

    /** That it counts for in {@link BatcherOptions#maxBytes}. */
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
