// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import java.util.function.Consumer;
import org.libdist.internal.dist_instances_options;

/** Options of {@link Strategy#openInstances}. Immutable: each method returns a new set of options. */
public final class InstancesOptions {
    /** The default options: instances have no state. */
    public static final InstancesOptions DEFAULT = new InstancesOptions();

    private int maxQueued;
    private long spinNanos;
    private boolean helperThreads;
    private long stuckNanos;
    private int maxReplaced;
    private ReplicaFunction<?> createState; // null: instances have no state
    private Consumer<Object> destroyState; // null: nothing is done at their end
    private RunFunction<?> warmUp; // null: nothing

    private InstancesOptions() {}

    private InstancesOptions(InstancesOptions other) {
        maxQueued = other.maxQueued;
        spinNanos = other.spinNanos;
        helperThreads = other.helperThreads;
        stuckNanos = other.stuckNanos;
        maxReplaced = other.maxReplaced;
        createState = other.createState;
        destroyState = other.destroyState;
        warmUp = other.warmUp;
    }

    /**
     * Sets the maximum number of queued requests; further ones are rejected. 0 selects the default (1024).
     */
    public InstancesOptions maxQueued(int maxQueued) {
        InstancesOptions changed = new InstancesOptions(this);
        changed.maxQueued = maxQueued;
        return changed;
    }

    /**
     * Sets how long an idle instance spins before it sleeps; zero selects the default (60 us), and a negative
     * value disables spinning.
     */
    public InstancesOptions spin(Duration spin) {
        InstancesOptions changed = new InstancesOptions(this);
        changed.spinNanos = Durations.nanos(spin, "spin");
        return changed;
    }

    /**
     * Sets whether libdist may start the thread that watches deadlines, with {@link ReplicaThreads#HOST}.
     * With library threads it always may.
     */
    public InstancesOptions helperThreads(boolean helperThreads) {
        InstancesOptions changed = new InstancesOptions(this);
        changed.helperThreads = helperThreads;
        return changed;
    }

    /**
     * Replaces the thread of a function that still runs this long after its deadline or cancellation; zero
     * means never. The new thread creates its own state and warms up. The limit also applies to a batcher's
     * step, counted from the deadline or cancellation of one of its items. All items of that instance then
     * complete; those that were not due fail with UNAVAILABLE. Not available with {@link
     * ReplicaThreads#HOST}.
     */
    public InstancesOptions stuck(Duration stuck) {
        InstancesOptions changed = new InstancesOptions(this);
        changed.stuckNanos = Durations.nanos(stuck, "stuck");
        return changed;
    }

    /** Sets the maximum number of such replacements; 0 selects the default (4). */
    public InstancesOptions maxReplaced(int maxReplaced) {
        InstancesOptions changed = new InstancesOptions(this);
        changed.maxReplaced = maxReplaced;
        return changed;
    }

    /**
     * Sets a function that creates the state of an instance, on its thread. {@link Replica#instanceState}
     * returns the state in the functions of requests. If the function throws, opening the instances fails.
     */
    public InstancesOptions createState(ReplicaFunction<?> createState) {
        InstancesOptions changed = new InstancesOptions(this);
        changed.createState = Objects.requireNonNull(createState, "createState");
        return changed;
    }

    /**
     * Sets a function that destroys a state, on the same thread, when the instances close. Exceptions that it
     * throws are ignored.
     */
    public InstancesOptions destroyState(Consumer<Object> destroyState) {
        InstancesOptions changed = new InstancesOptions(this);
        changed.destroyState = Objects.requireNonNull(destroyState, "destroyState");
        return changed;
    }

    /**
     * Sets a function that is called once on each instance, after {@link #createState} and before the first
     * request.
     */
    public InstancesOptions warmUp(RunFunction<?> warmUp) {
        InstancesOptions changed = new InstancesOptions(this);
        changed.warmUp = Objects.requireNonNull(warmUp, "warmUp");
        return changed;
    }

    ReplicaFunction<?> createState() {
        return createState;
    }

    Consumer<Object> destroyState() {
        return destroyState;
    }

    RunFunction<?> warmUp() {
        return warmUp;
    }

    dist_instances_options toNative(Uses uses, long token) {
        dist_instances_options options = new dist_instances_options();
        uses.defer(options::delete);
        options.setMax_queued(maxQueued);
        options.setSpin_ns(spinNanos);
        options.setHelper_threads(helperThreads ? 1 : 0);
        options.setStuck_ns(stuckNanos);
        options.setMax_replaced(maxReplaced);
        options.set_functions(token, createState == null ? 0 : 1, warmUp == null ? 0 : 1);
        return options;
    }
}
