// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import org.libdist.internal.DistModule;

/** A run whose replicas are tasks of an executor. Each task enters the run, calls the function and leaves. */
final class ExecutorRun extends RunCall {
    private final List<Part> parts = new ArrayList<>();
    private final AtomicInteger inside = new AtomicInteger();
    private final CompletableFuture<Void> done = new CompletableFuture<>();
    private final long deadlineNanos; // of System.nanoTime(); 0: none
    private final long timeoutNanos;
    private final Cancel given; // null: none
    private volatile CompletableFuture<Void> turn; // asked for when all is checked that can be refused before
    private volatile boolean begun; // it is this run's turn
    private DistException report; // how the run ended; null: well

    ExecutorRun(Strategy strategy, RunOptions options) {
        super(strategy);
        given = options.cancel;
        timeoutNanos = options.timeoutNanos;
        deadlineNanos = timeoutNanos == 0 ? 0 : System.nanoTime() + timeoutNanos;
    }

    <X extends Exception> void run(RunFunction<X> body) throws X {
        this.<X>all(replica -> {
            body.call(replica);
            return null;
        });
    }

    /**
     * Uses merge calls to do what native runs on values do: each replica gets its component of the arguments,
     * and the results of all replicas are merged.
     */
    <X extends Exception> Value run(ValuesFunction<X> fn, Value args, Value kwargs) throws X {
        AtomicLong merged = new AtomicLong();
        AtomicBoolean any = new AtomicBoolean();
        try (Value given = pair(args, kwargs)) {
            this.<X>all(replica -> {
                Value result;
                try (Value own = replica.mergeCall((s, none, named) -> given, null, null, CollectiveOptions.DEFAULT)) {
                    result = fn.call(replica, orNull(own.item(0)), orNull(own.item(1)));
                    any.compareAndSet(false, result != null);
                    try (Value one = Value.createTuple(strategy, orNone(result))) {
                        replica.mergeCall((s, results, named) -> {
                            merged.set(Value.handedOver(results.item(0)));
                            return null;
                        }, one, null, CollectiveOptions.DEFAULT);
                    }
                }
                return null;
            });
        } catch (Throwable t) {
            release(merged.get());
            throw t;
        }
        if (!any.get()) {
            release(merged.get());
            return null;
        }
        return Value.taken(merged.get());
    }

    private static void release(long value) {
        if (value != 0) {
            DistModule.dist_value_release(value);
        }
    }

    private Value pair(Value args, Value kwargs) {
        try (Uses uses = new Uses()) {
            long[] items = {Value.arguments(uses, strategy, args), uses.ofNullable(kwargs)};
            long[] none = new long[1];
            DistModule.dist_value_create_none(uses.of(strategy), none);
            uses.defer(() -> DistModule.dist_value_release(none[0]));
            for (int i = 0; i < items.length; i++) {
                items[i] = items[i] == 0 ? none[0] : items[i];
            }
            if (kwargs != null && kwargs.kind() != ValueKind.DICT) {
                throw new DistException(Status.INVALID_ARGUMENT,
                        "kwargs is " + kwargs.describe()
                                + ", but must be a dictionary of named arguments, or null");
            }
            long[] out = new long[1];
            DistModule.dist_value_create_tuple(uses.of(strategy), items, items.length, out);
            return Value.taken(out[0]);
        }
    }

    private static Value orNull(Value item) {
        return item.kind() == ValueKind.NONE ? null : item;
    }

    private Value orNone(Value result) {
        return result == null ? Value.createNone(strategy) : result;
    }

    /**
     * The part of one replica, which runs on a thread of the executor or, if it does not run there, on a
     * substitute.
     */
    private final class Part implements Runnable {
        private final int id;
        private final Body<Void> body;
        private final AtomicBoolean taken = new AtomicBoolean();
        private volatile boolean over;

        Part(int id, Body<Void> body) {
            this.id = id;
            this.body = body;
        }

        @Override
        public void run() {
            if (taken.compareAndSet(false, true)) {
                play(body);
            }
        }

        /**
         * Runs the part in place of an executor that rejected it, because a run ends only when all replicas
         * have entered and left.
         */
        void standIn(Exception reason) {
            if (taken.compareAndSet(false, true)) {
                Thread thread = new Thread(() -> play(replica -> { throw reason; }), "dist-r" + id);
                thread.setDaemon(true);
                thread.start();
            }
        }

        private void play(Body<Void> function) {
            try {
                enterAndLeave(function);
            } catch (DistException e) {
                ended(e);
            } finally {
                over = true;
                if (inside.decrementAndGet() == 0) {
                    settle();
                    strategy.life().collectRest();
                    done.complete(null);
                }
            }
        }

        private void enterAndLeave(Body<Void> function) {
            long[] handle = new long[1];
            try (Uses uses = new Uses()) {
                DistModule.dist_replica_enter(uses.of(strategy), id, handle);
            } catch (DistException e) { // no caller waits for this replica
                strategy.cancelIfOpen();
                throw e;
            }
            int status = 0;
            try {
                asReplica(handle[0], function);
            } catch (Throwable t) {
                keep(t);
                status = tell(t);
            }
            DistModule.dist_replica_leave(handle[0], status);
        }
    }

    private synchronized void ended(DistException how) {
        if (report == null) {
            report = how;
        }
    }

    private synchronized DistException report() {
        return report;
    }

    private <X extends Exception> void all(Body<Void> body) throws X {
        if (Thread.currentThread().isInterrupted()) {
            throw interruption();
        }
        if (Replica.isInside(strategy)) {
            throw new DistException(Status.FAILED_PRECONDITION,
                    "Strategy.run() inside a replica: runs on an executor do not nest");
        }
        try (Uses uses = new Uses()) {
            uses.ofRun(strategy); // open until here, or until a shutdown
            turn = strategy.turns().ask();
            if (given != null) {
                given.begin(this);
            }
            try {
                await(turn, "is still waiting for its turn");
                begin(body);
                await(done, "has not ended");
            } finally {
                if (given != null) {
                    given.end(this);
                }
                if (!begun) {
                    strategy.turns().leave(turn);
                } else {
                    if (!done.isDone()) { // too late: no caller receives their exceptions
                        cancel(null);
                    }
                    done.whenComplete((nothing, failure) -> strategy.turns().leave(turn));
                }
            }
        }
        DistException how = report();
        if (how != null) {
            throw Target.<X>rethrow(explained(cause(how)));
        }
    }

    private void begin(Body<Void> body) {
        int locals = strategy.properties().numLocalReplicas();
        for (int i = 0; i < locals; i++) {
            parts.add(new Part(strategy.firstReplica() + i, body));
        }
        inside.set(parts.size());
        begun = true;
        for (Part part : parts) {
            try {
                strategy.executor().execute(part);
            } catch (RuntimeException e) { // RejectedExecutionException, and what else an executor throws
                part.standIn(e);
            }
        }
    }

    /** Cancels this run. While it has its turn, no other run is in progress. */
    @Override
    public void cancel(String reason) {
        DistException cancelled = new DistException(
                Status.CANCELLED, "the run was cancelled" + (reason == null ? "" : ": " + reason));
        turn.completeExceptionally(cancelled); // no effect if it has completed
        if (begun) {
            strategy.cancelIfOpen();
            parts.forEach(part -> part.standIn(cancelled));
        }
    }

    /** Waits. An interrupt cancels the run, but its functions are still waited for. */
    private void await(CompletableFuture<Void> event, String late) {
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    if (deadlineNanos == 0) {
                        event.get();
                    } else {
                        event.get(Math.max(deadlineNanos - System.nanoTime(), 0), TimeUnit.NANOSECONDS);
                    }
                    return;
                } catch (InterruptedException e) {
                    interrupted = true;
                    interrupted(Thread.currentThread());
                    if (event != done) {
                        throw interruption();
                    }
                } catch (ExecutionException e) {
                    throw new DistException(Status.CANCELLED, e.getCause().getMessage());
                } catch (TimeoutException e) {
                    throw late(late);
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private DistException late(String late) {
        String ids = parts.stream()
                             .filter(part -> !part.over)
                             .map(part -> Integer.toString(part.id))
                             .collect(Collectors.joining(", "));
        return new DistException(Status.DEADLINE_EXCEEDED,
                "the deadline of " + timeoutNanos / 1e9 + " s is over: the run " + late
                        + (ids.isEmpty() ? "" : "; still inside: replicas " + ids));
    }
}
