// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import java.util.function.Consumer;
import org.libdist.internal.DistModule;

/**
 * A series of something that all replicas read, weights for example, and that is replaced while they run.
 *
 * <p>All replicas of a run see one version, the latest when the first of them asks, to the end of the run; so do
 * its logical devices. A request is a run of one. A version stays until it is neither the latest nor seen by a
 * run. Any thread may use a series.
 *
 * @param <T> what is published
 */
public final class Versions<T> extends NativeObject {
    private final Consumer<? super T> release; // null: nothing is done

    /** Without a version. Contents that nobody sees any more are the garbage collector's. */
    public Versions() {
        this(create(), null);
    }

    /**
     * Without a version.
     *
     * @param release ends a version that nobody sees any more: called once for each, on the thread that lets go
     *         of it last; it waits for no request or version, and what it throws is dropped
     */
    public Versions(Consumer<? super T> release) {
        this(createFor(Objects.requireNonNull(release, "release")), release);
    }

    private Versions(long handle, Consumer<? super T> release) {
        super(new Series(handle));
        this.release = release;
    }

    /** The check of the argument comes first. */
    private static long createFor(Consumer<?> release) {
        return create();
    }

    private static long create() {
        long[] out = new long[1];
        DistModule.dist_versions_create(out);
        return out[0];
    }

    /** A handle whose end calls a function of the user's, which may ask it something: nothing is locked meanwhile. */
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

    /** What a version's token stands for, until it is released. */
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
        void keep(Throwable t) {} // nobody asks
    }

    /**
     * Makes {@code content} the latest version; also inside a replica, whose run goes on with the version that it
     * sees.
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

    /** The number of the latest version; 0: there is none. */
    public long latest() {
        return ask(DistModule::dist_versions_latest);
    }

    /** As {@link #await(long, Duration)}, without a limit. */
    public void await(long number) {
        await(number, Duration.ofNanos(-1));
    }

    /**
     * Waits until all versions before {@code number} have been released. Outside the replicas' functions: a run may
     * see such a version.
     *
     * @param timeout zero: not at all; negative: no limit
     * @throws DistException DEADLINE_EXCEEDED runs still see some, and the message says which
     */
    public void await(long number, Duration timeout) {
        long nanos = Durations.nanos(timeout, "timeout");
        try (Uses uses = new Uses()) {
            DistModule.dist_versions_await(uses.of(this), number, nanos);
        }
    }

    /** The version that a replica's run sees. */
    @SuppressWarnings("unchecked") // what publish() got
    Version<T> seenBy(long replica) {
        long[] token = new long[1];
        long[] number = new long[1];
        try (Uses uses = new Uses()) {
            DistModule.dist_replica_version(replica, uses.of(this), token, number);
            return new Version<>(((Published<T>) Upcalls.target(token[0])).content, number[0]);
        }
    }

    /**
     * Gives up the series: the latest version is released when no run sees it any more. Runs that see one may be
     * under way.
     */
    @Override
    public void close() {
        super.close();
    }
}
