// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import java.util.function.Consumer;
import org.libdist.internal.dist_instances_options;

/** Choices for {@link Strategy#openInstances}. Immutable: each method gives another set of options. */
public final class InstancesOptions {
    /** Without states. */
    public static final InstancesOptions DEFAULT = new InstancesOptions();

    private int maxQueued;
    private long spinNanos;
    private boolean helperThreads;
    private long stuckNanos;
    private int maxReplaced;
    private ReplicaFunction<?> createState; // null: instances have no state
    private Consumer<Object> destroyState; // null: nothing is done at their end
    private ReplicaBody<?> warmUp; // null: nothing

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

    /** Requests that no instance has begun; one more is refused. 0: 1024. */
    public InstancesOptions maxQueued(int maxQueued) {
        InstancesOptions changed = new InstancesOptions(this);
        changed.maxQueued = maxQueued;
        return changed;
    }

    /** How long a free instance looks for the next request before it sleeps; zero: 60 us; negative: not at all. */
    public InstancesOptions spin(Duration spin) {
        InstancesOptions changed = new InstancesOptions(this);
        changed.spinNanos = Durations.nanos(spin, "spin");
        return changed;
    }

    /**
     * With {@link ReplicaThreads#HOST}, whether libdist may start the thread that watches deadlines; with
     * threads of libdist's it always may.
     */
    public InstancesOptions helperThreads(boolean helperThreads) {
        InstancesOptions changed = new InstancesOptions(this);
        changed.helperThreads = helperThreads;
        return changed;
    }

    /**
     * How long after its deadline or cancel a request's function may go on before its replica gets another thread,
     * which makes a state of its own and warms up; zero: that is never done. A batcher's step may go on as long after one
     * of its items was to end: then all items of its instance end, with UNAVAILABLE where they were not to. Not with
     * {@link ReplicaThreads#HOST}.
     */
    public InstancesOptions stuck(Duration stuck) {
        InstancesOptions changed = new InstancesOptions(this);
        changed.stuckNanos = Durations.nanos(stuck, "stuck");
        return changed;
    }

    /** How often that may be done; 0: 4 times. */
    public InstancesOptions maxReplaced(int maxReplaced) {
        InstancesOptions changed = new InstancesOptions(this);
        changed.maxReplaced = maxReplaced;
        return changed;
    }

    /**
     * Makes the state of an instance, on its thread: {@link Replica#instanceState} gives it to each request's
     * function. Where it throws, the instances do not open.
     */
    public InstancesOptions createState(ReplicaFunction<?> createState) {
        InstancesOptions changed = new InstancesOptions(this);
        changed.createState = Objects.requireNonNull(createState, "createState");
        return changed;
    }

    /** Ends a state, on the same thread, when the instances close; what it throws is dropped. */
    public InstancesOptions destroyState(Consumer<Object> destroyState) {
        InstancesOptions changed = new InstancesOptions(this);
        changed.destroyState = Objects.requireNonNull(destroyState, "destroyState");
        return changed;
    }

    /** Called once on each instance, after {@link #createState}, before it gets requests. */
    public InstancesOptions warmUp(ReplicaBody<?> warmUp) {
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

    ReplicaBody<?> warmUp() {
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
