// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import java.util.OptionalInt;
import org.libdist.internal.dist_rendezvous_options;

/**
 * A job whose workers meet at one address. Values that are not set are read from the environment. Immutable: each
 * method returns a new set of options. A null text is not set.
 */
public final class RendezvousOptions {
    /** Options in which nothing is set. */
    public static final RendezvousOptions DEFAULT = new RendezvousOptions();

    private OptionalInt rank = OptionalInt.empty();
    private int size;
    private String address;
    private String jobName;
    private long timeoutNanos;
    private Cancel cancel; // null: none

    private RendezvousOptions() {}

    private RendezvousOptions copy() {
        RendezvousOptions copy = new RendezvousOptions();
        copy.rank = rank;
        copy.size = size;
        copy.address = address;
        copy.jobName = jobName;
        copy.timeoutNanos = timeoutNanos;
        copy.cancel = cancel;
        return copy;
    }

    /** Sets the number of this worker, from 0 to size - 1. Without it, the launcher's rank is used. */
    public RendezvousOptions rank(int rank) {
        RendezvousOptions copy = copy();
        copy.rank = OptionalInt.of(rank);
        return copy;
    }

    /** Sets the number of workers; 0 selects that of the launcher. */
    public RendezvousOptions size(int size) {
        RendezvousOptions copy = copy();
        copy.size = size;
        return copy;
    }

    /**
     * Sets the address of worker 0, "host:port". Without it, DIST_RENDEZVOUS is used, or else MASTER_ADDR with the
     * port after MASTER_PORT.
     */
    public RendezvousOptions address(String address) {
        RendezvousOptions copy = copy();
        copy.address = address;
        return copy;
    }

    /**
     * Sets a name that all workers of the job share and that other jobs do not have. Without it, DIST_JOB_NAME or the
     * launcher's name is used.
     */
    public RendezvousOptions jobName(String jobName) {
        RendezvousOptions copy = copy();
        copy.jobName = jobName;
        return copy;
    }

    /** Limits the wait; zero selects the default (600 s), and a negative value means no limit. */
    public RendezvousOptions timeout(Duration timeout) {
        RendezvousOptions copy = copy();
        copy.timeoutNanos = Durations.nanos(timeout, "timeout");
        return copy;
    }

    /** Sets an object that cancels the wait. */
    public RendezvousOptions cancel(Cancel cancel) {
        RendezvousOptions copy = copy();
        copy.cancel = Objects.requireNonNull(cancel, "cancel");
        return copy;
    }

    Cancel cancel() {
        return cancel;
    }

    /** @param cancel the call's own */
    dist_rendezvous_options toNative(Uses uses, long cancel) {
        dist_rendezvous_options options = new dist_rendezvous_options();
        uses.defer(options::delete);
        if (rank.isPresent()) {
            options.setHas_rank(1);
            options.setRank(rank.getAsInt());
        }
        options.setSize(size);
        options.setAddress(Texts.orNull(address));
        options.setJob_name(Texts.orNull(jobName));
        options.setTimeout_ns(timeoutNanos);
        options.setCancel(cancel);
        return options;
    }
}
