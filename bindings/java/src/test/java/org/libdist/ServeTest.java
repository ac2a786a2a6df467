// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/** Requests: functions that run on one free replica each. */
final class ServeTest {
    private static final Duration FOREVER = Duration.ofNanos(-1);
    private static final StrategyOptions SERVER =
            StrategyOptions.DEFAULT.numReplicas(2).threads(ReplicaThreads.LIBRARY);

    private ServeTest() {}

    static void addTo(Tap tap) {
        tap.add("a request runs on one replica", on(2, ServeTest::one));
        tap.add("what a request throws is its own", on(2, ServeTest::failures));
        tap.add("requests of a poor kind", on(2, ServeTest::misuse));
        tap.add("queued requests end at once", on(1, ServeTest::queued));
        tap.add("running requests are told", on(1, ServeTest::running));
        tap.add("instances have states", ServeTest::states);
        tap.add("the instances' end cancels", on(1, ServeTest::closeCancels));
        tap.add("requests that come too late", on(2, ServeTest::tooLate));
        tap.add("the strategy's end cancels", ServeTest::shutdown);
        tap.add("thousands of requests", on(2, ServeTest::thousands));
        tap.add("where futures are completed", on(1, ServeTest::completions));
        tap.add("threads of the program serve", ServeTest::host);
        tap.add("interrupts of an instance's thread", on(1, ServeTest::interrupted));
    }

    private interface Test {
        void run(Strategy strategy) throws Exception;
    }

    private static Tap.Test on(int replicas, Test test) {
        return () -> {
            try (Strategy strategy = Strategy.create(SERVER.numReplicas(replicas))) {
                test.run(strategy);
            }
        };
    }

    /** How a request has failed. */
    private static Throwable failure(CompletableFuture<?> request) throws InterruptedException {
        return thrown(ExecutionException.class, request::get).getCause();
    }

    private static void failed(Status status, CompletableFuture<?> request) throws InterruptedException {
        equal(status, ((DistException) failure(request)).status());
    }

    private static void refused(Status status, Tap.Test call) {
        equal(status, thrown(DistException.class, call).status());
    }

    /** A request that is inside its function until the latch is open. */
    private static Request<Void> hold(Strategy strategy, CountDownLatch over) throws InterruptedException {
        CountDownLatch inside = new CountDownLatch(1);
        Request<Void> held = strategy.submit(replica -> {
            inside.countDown();
            over.await();
            return null;
        });
        inside.await();
        return held;
    }

    private static void one(Strategy strategy) throws Exception {
        AtomicInteger calls = new AtomicInteger();
        AtomicInteger sum = new AtomicInteger();
        Request<String> request = strategy.submit(replica -> {
            calls.incrementAndGet();
            replica.parallelFor(0, 100, 10, (begin, end) -> sum.addAndGet((int) (end - begin)));
            refused(Status.FAILED_PRECONDITION, replica::barrier);
            check(replica.strategy() == strategy && replica.instanceState() == null);
            replica.check();
            return "answer";
        }, SubmitOptions.DEFAULT.priority(SubmitOptions.PRIORITY_MAX));
        equal("answer", request.get());
        check(calls.get() == 1 && sum.get() == 100 && !request.cancel(true), calls, sum);
        strategy.run(replica -> {}); // they share the replicas
    }

    private static void failures(Strategy strategy) throws Exception {
        IOException boom = new IOException("boom");
        check(failure(strategy.submit(replica -> {
            throw boom;
        })) == boom);
        StackOverflowError error = new StackOverflowError("mine");
        check(failure(strategy.submit(replica -> {
            throw error;
        })) == error);
        failed(Status.NOT_FOUND, strategy.submit(replica -> {
            throw new DistException(Status.NOT_FOUND, "no row 7");
        }));
        equal(1, strategy.submit(replica -> 1).get());
    }

    private static void misuse(Strategy strategy) throws Exception {
        try (Strategy caller = Strategy.create(2)) {
            DistException refusal = thrown(DistException.class, () -> caller.submit(replica -> 1));
            check(refusal.status() == Status.FAILED_PRECONDITION
                            && refusal.getMessage().contains("ReplicaThreads.LIBRARY"),
                    refusal);
        }
        long tokens = Upcalls.lastToken();
        for (int priority : new int[] {SubmitOptions.PRIORITY_MIN - 1, SubmitOptions.PRIORITY_MAX + 1}) {
            refused(Status.INVALID_ARGUMENT,
                    () -> strategy.submit(replica -> 1, SubmitOptions.DEFAULT.priority(priority)));
        }
        refused(Status.INVALID_ARGUMENT, () -> strategy.openInstances(InstancesOptions.DEFAULT.maxQueued(-1)));
        equal(0, Upcalls.sizeSince(tokens));
        thrown(NullPointerException.class, () -> strategy.submit(null));
        refused(Status.FAILED_PRECONDITION, () -> strategy.serve(0));
        Replica kept = strategy.submit(replica -> replica).get();
        refused(Status.FAILED_PRECONDITION, kept::check);
        refused(Status.FAILED_PRECONDITION, kept::instanceState);
        thrown(ExecutionException.class, () -> strategy.submit(r -> r.instanceState(String.class).length()).get());
        Strategy closed = Strategy.create(SERVER);
        Instances instances = closed.openInstances();
        equal(closed, instances.strategy());
        closed.close();
        instances.close();
        refused(Status.FAILED_PRECONDITION, () -> closed.submit(replica -> 1));
    }

    private static void queued(Strategy strategy) throws Exception {
        CountDownLatch over = new CountDownLatch(1);
        AtomicInteger calls = new AtomicInteger();
        Request<Void> held = hold(strategy, over);
        Request<Integer> queued = strategy.submit(replica -> calls.incrementAndGet());
        check(queued.cancel(false) && queued.isCancelled());
        thrown(CancellationException.class, queued::get);
        Request<Integer> late = strategy.submit(replica -> calls.incrementAndGet());
        late.orTimeout(1, TimeUnit.NANOSECONDS);
        check(failure(late) instanceof java.util.concurrent.TimeoutException);
        failed(Status.DEADLINE_EXCEEDED,
                strategy.submit(
                        replica -> calls.incrementAndGet(), SubmitOptions.DEFAULT.timeout(Duration.ofNanos(1))));
        try (Cancel stop = Cancel.create()) {
            SubmitOptions options = SubmitOptions.DEFAULT.cancel(stop);
            Request<Integer> stopped = strategy.submit(replica -> calls.incrementAndGet(), options);
            stop.signal("the client is gone");
            check(failure(stopped).getMessage().contains("the client is gone"));
            refused(Status.CANCELLED, () -> strategy.submit(replica -> calls.incrementAndGet(), options));
        }
        refused(Status.FAILED_PRECONDITION, strategy::close);
        over.countDown();
        held.get();
        strategy.closeInstances(FOREVER); // what was cancelled has arrived, too
        equal(0, calls.get());
    }

    private static void running(Strategy strategy) throws Exception {
        CountDownLatch inside = new CountDownLatch(1);
        AtomicReference<Throwable> told = new AtomicReference<>();
        Request<Void> request = strategy.submit(replica -> {
            inside.countDown();
            try {
                while (true) {
                    replica.check();
                }
            } catch (DistException e) {
                told.set(e);
                throw e;
            }
        });
        inside.await();
        request.cancel(true);
        strategy.closeInstances(FOREVER);
        equal(Status.CANCELLED, ((DistException) told.get()).status());
        refused(Status.UNAVAILABLE, () -> strategy.submit(replica -> 1));
    }

    private static final class Engine {
        private final int id;
        private int answers;

        Engine(int id) {
            this.id = id;
        }
    }

    private static void states() throws Exception {
        long tokens = Upcalls.lastToken();
        AtomicInteger warm = new AtomicInteger();
        List<Integer> ended = Collections.synchronizedList(new ArrayList<>());
        IOException boom = new IOException("boom");
        try (Strategy strategy = Strategy.create(SERVER)) {
            InstancesOptions options =
                    InstancesOptions.DEFAULT.createState(replica -> new Engine(replica.id()))
                            .destroyState(state -> ended.add(((Engine) state).id + strategy.numReplicas()))
                            .warmUp(replica -> warm.addAndGet(replica.instanceState(Engine.class).id + 1));
            try (Instances instances = strategy.openInstances(options)) {
                equal(3, warm.get());
                refused(Status.FAILED_PRECONDITION, strategy::openInstances);
                for (int i = 0; i < 20; i++) {
                    check(strategy.submit(replica -> {
                        Engine mine = replica.instanceState(Engine.class);
                        mine.answers++; // on its instance's thread alone
                        return mine.id == replica.id();
                    }).get());
                }
                instances.close(Duration.ofSeconds(60));
            }
            equal(5, ended.stream().mapToInt(Integer::intValue).sum());
            check(thrown(IOException.class, () -> strategy.openInstances(options.warmUp(replica -> {
                if (replica.id() == 1) {
                    throw boom;
                }
            }))) == boom);
            check(thrown(IOException.class, () -> strategy.openInstances(options.createState(replica -> {
                throw boom;
            }))) == boom);
            ended.clear();
            strategy.openInstances(options); // the strategy's end is theirs
        }
        equal(2, ended.size());
        equal(0, Upcalls.sizeSince(tokens));
    }

    private static void closeCancels(Strategy strategy) throws Exception {
        CountDownLatch inside = new CountDownLatch(1);
        Request<Void> running = strategy.submit(replica -> {
            inside.countDown();
            while (true) {
                replica.check();
            }
        });
        inside.await();
        Request<Integer> queued = strategy.submit(replica -> 1);
        DistException report = thrown(DistException.class, () -> strategy.closeInstances(Duration.ZERO));
        check(report.status() == Status.DEADLINE_EXCEEDED && report.getMessage().contains("2 requests"), report);
        failed(Status.CANCELLED, running);
        failed(Status.CANCELLED, queued);
    }

    /** The instances' end waits for none that it has refused. */
    private static void tooLate(Strategy strategy) throws Exception {
        AtomicBoolean over = new AtomicBoolean();
        Set<Status> seen = ConcurrentHashMap.newKeySet();
        strategy.openInstances();
        FutureTask<Void> submits = new FutureTask<>(() -> {
            while (!over.get()) {
                try {
                    strategy.submit(replica -> 1).get();
                } catch (DistException e) {
                    seen.add(e.status());
                }
            }
            return null;
        });
        new Thread(submits).start();
        for (int i = 0; i < 100; i++) {
            strategy.closeInstances(FOREVER);
            strategy.openInstances();
        }
        over.set(true);
        submits.get();
        // FAILED_PRECONDITION: the instances are opening.
        check(seen.remove(Status.UNAVAILABLE), seen);
        check(Set.of(Status.FAILED_PRECONDITION).containsAll(seen), seen);
    }

    private static void shutdown() throws Exception {
        long tokens = Upcalls.lastToken();
        CountDownLatch over = new CountDownLatch(1);
        CountDownLatch ended = new CountDownLatch(1);
        Strategy strategy = Strategy.create(SERVER.numReplicas(1));
        strategy.openInstances(
                InstancesOptions.DEFAULT.createState(replica -> 1).destroyState(state -> ended.countDown()));
        CountDownLatch inside = new CountDownLatch(1);
        Request<Void> running = strategy.submit(replica -> {
            inside.countDown();
            over.await();
            replica.check();
            return null;
        });
        inside.await();
        Request<Integer> queued = strategy.submit(replica -> 1);
        refused(Status.DEADLINE_EXCEEDED, () -> strategy.close(Duration.ZERO));
        failed(Status.CANCELLED, queued);
        over.countDown();
        failed(Status.CANCELLED, running);
        ended.await();
        while (Upcalls.sizeSince(tokens) != 0) {
            Thread.onSpinWait();
        }
    }

    private static void thousands(Strategy strategy) throws Exception {
        int n = 10_000;
        try (Instances instances = strategy.openInstances(InstancesOptions.DEFAULT.maxQueued(n))) {
            equal(strategy, instances.strategy());
            CountDownLatch over = new CountDownLatch(1);
            List<Request<Void>> held = List.of(hold(strategy, over), hold(strategy, over));
            int threads = Thread.activeCount();
            List<Request<Integer>> requests = new ArrayList<>();
            for (int i = 0; i < n; i++) {
                int mine = i;
                requests.add(strategy.submit(replica -> mine));
            }
            DistException full = thrown(DistException.class, () -> strategy.submit(replica -> 1));
            check(full.status() == Status.RESOURCE_EXHAUSTED && full.getMessage().contains("maxQueued"), full);
            check(Thread.activeCount() <= threads + 2, Thread.activeCount(), threads);
            over.countDown();
            CompletableFuture.allOf(requests.toArray(new CompletableFuture<?>[0])).get();
            for (int i = 0; i < n; i++) {
                equal(i, requests.get(i).get());
            }
            for (Request<Void> each : held) {
                each.get();
            }
        }
    }

    private static void completions(Strategy strategy) throws Exception {
        CountDownLatch over = new CountDownLatch(1);
        Request<Void> held = hold(strategy, over);
        ExecutorService pool = Executors.newSingleThreadExecutor(run -> new Thread(run, "mine"));
        CompletableFuture<String> onOwn =
                strategy.submit(replica -> 1).thenApply(value -> Thread.currentThread().getName());
        SubmitOptions options = SubmitOptions.DEFAULT.executor(pool);
        CompletableFuture<String> onPool =
                strategy.submit(replica -> 1, options).thenApply(value -> Thread.currentThread().getName());
        // A dependent may submit.
        CompletableFuture<Integer> chain =
                strategy.submit(replica -> 1).thenCompose(value -> strategy.submit(replica -> value + 1));
        over.countDown();
        equal("dist-completions", onOwn.get());
        equal("mine", onPool.get());
        equal(2, chain.get());
        held.get();
        pool.shutdown();
        check(failure(strategy.submit(replica -> 1, options))
                        instanceof java.util.concurrent.RejectedExecutionException);
    }

    private static void host() throws Exception {
        IOException boom = new IOException("boom");
        try (Strategy strategy =
                        Strategy.create(StrategyOptions.DEFAULT.numReplicas(2).threads(ReplicaThreads.HOST))) {
            strategy.openInstances(InstancesOptions.DEFAULT.createState(replica -> {
                throw boom;
            }));
            check(thrown(IOException.class, () -> strategy.serve(0)) == boom);
            strategy.closeInstances(FOREVER);
            CountDownLatch ready = new CountDownLatch(2);
            Instances instances = strategy.openInstances(
                    InstancesOptions.DEFAULT.helperThreads(true).warmUp(replica -> ready.countDown()));
            refused(Status.INVALID_ARGUMENT, () -> strategy.serve(2));
            List<FutureTask<Void>> served = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                int id = i;
                FutureTask<Void> task = new FutureTask<>(() -> strategy.serve(id), null);
                served.add(task);
                new Thread(task, "server " + i).start();
            }
            ready.await();
            refused(Status.FAILED_PRECONDITION, () -> strategy.serve(1));
            for (int i = 0; i < 100; i++) {
                check(strategy.submit(replica -> Thread.currentThread().getName()).get().startsWith("server"));
            }
            instances.close();
            for (FutureTask<Void> each : served) {
                each.get();
            }
        }
    }

    private static void interrupted(Strategy strategy) throws Exception {
        CountDownLatch inside = new CountDownLatch(1);
        AtomicReference<Thread> thread = new AtomicReference<>();
        Request<Void> request = strategy.submit(replica -> {
            thread.set(Thread.currentThread());
            inside.countDown();
            while (true) {
                replica.check();
            }
        });
        inside.await();
        thread.get().interrupt();
        DistException failure = (DistException) failure(request);
        check(failure.status() == Status.CANCELLED && failure.getCause() instanceof InterruptedException, failure);
        equal(false, strategy.submit(replica -> Thread.currentThread().isInterrupted()).get());
    }
}
