// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import java.util.function.Consumer;
import org.libdist.internal.DistModule;

/**
 * A series of versions of data that all replicas read, such as model weights, and that can be replaced while
 * they run.
 *
 * <p>All replicas of a run, and their logical devices, see the same version until the run ends: the one that
 * is latest when the first of them asks. A request counts as a run of one replica. libdist keeps a version
 * until a newer one is published and no run sees it any more. Any thread may use a series.
 *
 * @param <T> the type of published objects
 */
public final class Versions<T> extends NativeObject {
    private final Consumer<? super T> release; // null: nothing is done

    private Versions(long handle, Consumer<? super T> release) {
        super(new Series(handle));
        this.release = release;
    }

    /**
     * Creates an empty series. Contents that no run sees any more are left to the garbage collector.
     *
     * @param <T> the type of published objects
     */
    public static <T> Versions<T> create() {
        return made(null);
    }

    /**
     * Creates an empty series.
     *
     * @param release releases a version that no run sees any more; called once for each, on the thread that
     *         stops using it last. It must not wait for a request or a version, and exceptions that it throws
     *         are ignored
     * @param <T> the type of published objects
     */
    public static <T> Versions<T> create(Consumer<? super T> release) {
        return made(Objects.requireNonNull(release, "release"));
    }

    private static <T> Versions<T> made(Consumer<? super T> release) {
        long[] out = new long[1];
        DistModule.dist_versions_create(out);
        return new Versions<>(out[0], release);
    }

    /**
     * A handle whose destruction calls a function of the program. That function may use the handle, so no
     * lock is held meanwhile.
     */
    private static final class Series extends Native {
        private boolean due;

        Series(long handle) {
            super("series of versions", handle, DistModule::dist_versions_destroy);
        }

        @Override
        boolean isTaken() {
            due = true; // by endWhereDue()
            return true;
        }

        @Override
        void release() {
            super.release();
            endWhereDue();
        }

        @Override
        void close() {
            super.close();
            endWhereDue();
        }

        @Override
        void collect() {
            super.collect();
            endWhereDue();
        }

        private void endWhereDue() {
            synchronized (this) {
                if (!due) {
                    return;
                }
                due = false;
            }
            DistModule.dist_versions_destroy(handle());
        }
    }

    /** A published version, which libdist knows by a token until it is released. */
    private static final class Published<T> extends Target {
        private final T content;
        private final Consumer<? super T> release;

        Published(T content, Consumer<? super T> release) {
            this.content = content;
            this.release = release;
        }

        @Override
        void released() {
            if (release != null) {
                release.accept(content);
            }
        }

        @Override
        void keep(Throwable t) {} // no caller receives it
    }

    /**
     * Makes {@code content} the latest version. It may be called inside a replica, whose run continues with
     * the version that it sees.
     *
     * @return its number: 1, 2, 3 and so on
     */
    public long publish(T content) {
        long token = Upcalls.register(new Published<>(Objects.requireNonNull(content, "content"), release));
        long[] number = new long[1];
        try (Uses uses = new Uses()) {
            DistModule.dist_versions_publish(uses.of(this), token, number);
        } finally {
            if (number[0] == 0) {
                Upcalls.unregister(token);
            }
        }
        return number[0];
    }

    /** Returns the number of the latest version; 0 if there is none. */
    public long latest() {
        return ask(DistModule::dist_versions_latest);
    }

    /** Same as {@link #await(long, Duration)}, without a limit. */
    public void await(long number) {
        await(number, Duration.ofNanos(-1));
    }

    /**
     * Waits until all versions before {@code number} have been released. It cannot be called inside a replica
     * function, because its run may see such a version.
     *
     * @param timeout zero means not to wait; a negative value means no limit
     * @throws DistException DEADLINE_EXCEEDED runs still see some of them, and the message lists them
     */
    public void await(long number, Duration timeout) {
        long nanos = Durations.nanos(timeout, "timeout");
        try (Uses uses = new Uses()) {
            DistModule.dist_versions_await(uses.of(this), number, nanos);
        }
    }

    /**
     * Returns the version that a replica's run sees, which is the same until the run ends.
     *
     * @throws DistException FAILED_PRECONDITION no version has been published
     */
    @SuppressWarnings("unchecked") // what publish() got
    public Version<T> get(Replica replica) {
        long handle = replica.active("dist_replica_version");
        long[] token = new long[1];
        long[] number = new long[1];
        try (Uses uses = new Uses()) {
            DistModule.dist_replica_version(handle, uses.of(this), token, number);
            return new Version<>(((Published<T>) Upcalls.target(token[0])).content, number[0]);
        }
    }

    /**
     * Closes the series. The latest version is released when no run sees it any more. Runs that see a version
     * may be in progress.
     */
    @Override
    public void close() {
        super.close();
    }
}
