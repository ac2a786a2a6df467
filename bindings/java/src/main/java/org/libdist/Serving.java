// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import org.libdist.internal.DistModule;

/** What a {@link Strategy} does for programs that answer requests: functions that run on one free replica each. */
public abstract class Serving extends CrossReplica {
    private InstanceStates states; // of the instances that were opened last; null: none were

    Serving(Native owner) {
        super(owner);
    }

    private Strategy self() {
        return (Strategy) this;
    }

    /** As {@link #submit(ReplicaFunction, SubmitOptions)}, with priority 0 and without a deadline. */
    public <T> Request<T> submit(ReplicaFunction<T> fn) {
        return submit(fn, SubmitOptions.DEFAULT);
    }

    /**
     * Has {@code fn} called once, on one replica that is free, and returns at once. Requests and runs share the
     * replicas by one queue: the greater priority comes first, and within a priority who came first.
     *
     * <p>Inside {@code fn} the replica is alone: parallelFor(), runOnDevices() and questions about it work;
     * collectives, groups and merge functions are FAILED_PRECONDITION. What it throws is this request's
     * failure, and of no other. An interrupt of its thread ends the request.
     *
     * @throws DistException RESOURCE_EXHAUSTED the queue is full: {@link InstancesOptions#maxQueued}. UNAVAILABLE
     *         the instances close, or have been closed. The first one opens them, as {@link #openInstances}
     */
    public <T> Request<T> submit(ReplicaFunction<T> fn, SubmitOptions options) {
        Objects.requireNonNull(fn, "fn");
        Objects.requireNonNull(options, "options");
        return new Request<>(self(), fn, options).begin();
    }

    /** As {@link #openInstances(InstancesOptions)}, without states. */
    public Instances openInstances() {
        return openInstances(InstancesOptions.DEFAULT);
    }

    /**
     * Makes the replicas ready for requests: each makes its state and warms up. The first submit() does it with
     * the default options where nobody has. With {@link ReplicaThreads#HOST} the instances are the threads that
     * call {@link #serve}, and each makes its state there. Waits until runs that came before have ended and
     * all instances are ready.
     *
     * @throws DistException FAILED_PRECONDITION run()'s caller is replica 0, the default: {@link
     *         StrategyOptions#threads} says otherwise; or they are open already
     */
    public Instances openInstances(InstancesOptions options) {
        InstanceStates made = new InstanceStates(Objects.requireNonNull(options, "options"));
        boolean opened = false;
        try (Uses uses = new Uses()) {
            DistModule.dist_instances_open(uses.of(this), options.toNative(uses, made.token()));
            opened = true;
        } catch (DistException report) {
            throw Target.<RuntimeException>rethrow(made.cause(report));
        } finally {
            if (!opened) {
                made.end();
            }
        }
        instances(made);
        return new Instances(self());
    }

    private synchronized void instances(InstanceStates made) {
        if (states != null) {
            states.end();
        }
        states = made;
    }

    /**
     * Ends the serving: from now on submit() is UNAVAILABLE, what was accepted runs to its end, and then each
     * instance ends its state. Afterwards they may be opened again.
     *
     * <p>Requests that have not ended after {@code timeout} are cancelled: those that are queued at once, and
     * those whose functions run as by {@link Request#cancel}. So they are where this thread is interrupted.
     *
     * @param timeout zero: none; negative: no limit
     * @throws DistException DEADLINE_EXCEEDED requests were cancelled: the message says how many, and which
     *         replicas are still inside
     */
    public void closeInstances(Duration timeout) {
        long nanos = Durations.nanos(timeout, "timeout");
        List<Request.Call<?>> accepted = Upcalls.requestsOf(self());
        Interrupts watch = Interrupts.watch(
                thread -> Upcalls.requestsOf(self()).forEach(call -> call.cancel(null)));
        try (Uses uses = new Uses()) {
            DistModule.dist_instances_close(uses.of(this), nanos);
        } catch (DistException e) {
            awaitEnded();
            throw e;
        } finally {
            watch.end();
        }
        accepted.forEach(Request.Call::awaitArrival);
    }

    /** Waits until those who wait for requests have been told of all that have ended. */
    final void awaitEnded() {
        Upcalls.requestsOf(self()).forEach(Request.Call::await);
    }

    /** Whether functions of the program's run at the strategy's end, which must not wait for who ends it. */
    final synchronized boolean endsStates() {
        return states != null && states.ends();
    }

    /** The strategy has ended. */
    final void statesEnd() {
        instances(null);
    }

    /**
     * A batcher, whose steps are on the strategy's instances: {@link #openInstances}, which this does where nobody
     * has. Close it before the strategy.
     */
    public <Q, R> Batcher<Q, R> batcher(StepFunction<Q, R> step, BatcherOptions options) {
        Objects.requireNonNull(step, "step");
        return Batcher.create(self(), step, Objects.requireNonNull(options, "options"));
    }

    /**
     * The calling thread serves as instance {@code replicaId} of a strategy with {@link ReplicaThreads#HOST}, until
     * the instances close, or the strategy does by {@link Strategy#close(Duration)}. Where none are open, it
     * opens them with the default options. What createState or warmUp threw is thrown here.
     */
    public void serve(int replicaId) {
        InstanceStates here;
        synchronized (this) {
            here = states;
        }
        try (Uses uses = new Uses()) {
            DistModule.dist_serve(uses.ofRun(self()), replicaId);
        } catch (DistException report) {
            throw Target.<RuntimeException>rethrow(here == null ? report : here.cause(report));
        }
    }
}
