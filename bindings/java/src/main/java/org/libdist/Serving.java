// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import org.libdist.internal.DistModule;

/**
 * The serving operations of a {@link Strategy}: functions that run on one replica each, to answer requests.
 */
public abstract class Serving extends CrossReplica {
    private InstanceStates states; // of the instances that were opened last; null: none were

    Serving(Native owner) {
        super(owner);
    }

    private Strategy self() {
        return (Strategy) this;
    }

    /** Same as {@link #submit(ReplicaFunction, SubmitOptions)}, with priority 0 and no deadline. */
    public <T> Request<T> submit(ReplicaFunction<T> fn) {
        return submit(fn, SubmitOptions.DEFAULT);
    }

    /**
     * Schedules one call of {@code fn} on the next idle replica and returns immediately. Requests and runs
     * share the replicas through one queue, which is ordered by priority, then by arrival.
     *
     * <p>Inside {@code fn}, the replica works alone: parallelFor(), runOnDevices() and methods that describe
     * the replica work, while collectives, groups and merge calls fail with FAILED_PRECONDITION. If {@code
     * fn} throws, only this request fails. Interrupting its thread cancels the request.
     *
     * @throws DistException RESOURCE_EXHAUSTED the queue is full: {@link InstancesOptions#maxQueued}.
     *         UNAVAILABLE the instances are closing or closed. If they are not open, the first request opens
     *         them, like {@link #openInstances}
     */
    public <T> Request<T> submit(ReplicaFunction<T> fn, SubmitOptions options) {
        Objects.requireNonNull(fn, "fn");
        Objects.requireNonNull(options, "options");
        return new Request<>(self(), fn, options).begin();
    }

    /** Same as {@link #openInstances(InstancesOptions)}, with default options. */
    public Instances openInstances() {
        return openInstances(InstancesOptions.DEFAULT);
    }

    /**
     * Prepares the replicas for requests: each instance creates its state and warms up. If the instances are
     * not open, the first submit() opens them with default options. With {@link ReplicaThreads#HOST}, the
     * instances are the threads that call {@link #serve}, and each creates its state there. Blocks until
     * earlier runs have ended and all instances are ready.
     *
     * @throws DistException FAILED_PRECONDITION the strategy has the default threads, with which the caller
     *         of run() is replica 0: set {@link StrategyOptions#threads}; or the instances are already open
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
     * Stops serving. New calls of submit() fail with UNAVAILABLE, accepted requests run to completion, and
     * then each instance destroys its state. The instances can be opened again afterwards.
     *
     * <p>Requests that have not completed after {@code timeout}, or when this thread is interrupted, are
     * cancelled: queued ones complete at once, and running ones are cancelled as with {@link Request#cancel}.
     *
     * @param timeout zero means not to wait; a negative value means no limit
     * @throws DistException DEADLINE_EXCEEDED requests were cancelled: the message states how many, and which
     *         replicas are still running a function
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

    /** Waits until the futures of all completed requests have been completed. */
    final void awaitEnded() {
        Upcalls.requestsOf(self()).forEach(Request.Call::await);
    }

    /**
     * Returns whether functions of the program run when the strategy ends. They must not wait for the thread
     * that ends it.
     */
    final synchronized boolean endsStates() {
        return states != null && states.ends();
    }

    /** Called after the strategy has ended. */
    final void statesEnd() {
        instances(null);
    }

    /**
     * Makes the calling thread instance {@code replicaId} of a strategy with {@link ReplicaThreads#HOST},
     * until the instances close or {@link Strategy#close(Duration)} is called. If the instances are not open,
     * it opens them with default options. Exceptions that createState or warmUp throw are rethrown here.
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
