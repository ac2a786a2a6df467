// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Batches: requests that an instance answers together, step by step. */
final class BatchTest {
    private static final StrategyOptions SERVER =
            StrategyOptions.DEFAULT.numReplicas(2).threads(ReplicaThreads.LIBRARY);

    private BatchTest() {}

    static void addTo(Tap tap) {
        tap.add("items are answered together", BatchTest::together);
        tap.add("what items fail with", BatchTest::failures);
        tap.add("items stay and give results", BatchTest::results);
        tap.add("what has ended arrives however late", BatchTest::late);
    }

    private static void together() throws Exception {
        AtomicInteger wrong = new AtomicInteger();
        AtomicInteger answered = new AtomicInteger();
        BatcherOptions options = BatcherOptions.DEFAULT.maxItems(4).buckets(8, 64);
        try (Strategy strategy = Strategy.create(SERVER);
                Batcher<AtomicInteger, Void> batcher = Batcher.create(strategy, (replica, batch) -> {
                    boolean fits = batch.size() <= 4 && (batch.bucket() == 8 || batch.bucket() == 64);
                    wrong.addAndGet(fits && replica.strategy() != null && batch.state(0) == null ? 0 : 1);
                    for (int i = 0; i < batch.size(); i++) {
                        batch.check(i);
                        batch.input(i).incrementAndGet();
                        answered.incrementAndGet();
                    }
                    thrown(IndexOutOfBoundsException.class, () -> batch.check(batch.size()));
                }, options)) {
            List<AtomicInteger> answers = new ArrayList<>();
            List<Item<Void>> items = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                answers.add(new AtomicInteger());
                items.add(batcher.submit(answers.get(i), ItemOptions.DEFAULT.length(i % 65)));
            }
            for (int i = 0; i < 200; i++) {
                items.get(i).get();
                equal(1, answers.get(i).get());
                equal(Optional.empty(), items.get(i).take());
            }
            check(wrong.get() == 0 && answered.get() == 200, wrong, answered);
            equal(0L, batcher.numWaiting() + batcher.numActive());
            equal(Status.INVALID_ARGUMENT,
                    thrown(DistException.class,
                            () -> batcher.submit(answers.get(0), ItemOptions.DEFAULT.length(65)))
                            .status());
        }
    }

    private static Throwable failure(Item<?> item) {
        return thrown(ExecutionException.class, item::get).getCause();
    }

    private static void failures() throws Exception {
        IOException boom = new IOException("boom");
        IOException mine = new IOException("mine");
        try (Strategy strategy = Strategy.create(SERVER);
                Batcher<String, Void> batcher = Batcher.create(strategy, (replica, batch) -> {
                    for (int i = 0; i < batch.size(); i++) {
                        switch (batch.input(i)) {
                            case "well" -> batch.end(i);
                            case "mine" -> batch.end(i, mine);
                            default -> check(true);
                        }
                    }
                    throw boom;
                }, BatcherOptions.DEFAULT)) {
            equal(null, batcher.submit("well").get());
            check(failure(batcher.submit("mine")) == mine);
            check(failure(batcher.submit("none")) == boom);
        }
    }

    private static void results() throws Exception {
        long tokens = Upcalls.lastToken();
        BatcherOptions options = BatcherOptions.DEFAULT.continuous(true).maxResults(2);
        try (Strategy strategy = Strategy.create(SERVER);
                Batcher<Integer, String> batcher = Batcher.create(strategy, (replica, batch) -> {
                    for (int i = 0; i < batch.size(); i++) {
                        Integer before = batch.state(i, Integer.class);
                        int left = (before == null ? batch.input(i) : before) - 1;
                        batch.setState(i, left);
                        batch.emit(i, "token " + left);
                        if (left == 0) {
                            batch.end(i);
                        }
                    }
                }, options)) {
            int[] lengths = {3, 1, 50, 7};
            List<Item<String>> items = new ArrayList<>();
            for (int length : lengths) {
                items.add(batcher.submit(length));
            }
            for (int i = 0; i < lengths.length; i++) {
                for (int left = lengths[i] - 1; left >= 0; left--) {
                    equal(Optional.of("token " + left), items.get(i).take());
                }
                equal(Optional.empty(), items.get(i).take());
                items.get(i).get();
            }
            Item<String> slow = batcher.submit(1000, ItemOptions.DEFAULT.timeout(Duration.ofHours(1)));
            equal(Optional.of("token 999"), slow.take());
            equal(Status.FAILED_PRECONDITION, thrown(DistException.class, batcher::close).status());
            slow.cancel(true); // nobody takes from it: it stays until then
            strategy.closeInstances(Duration.ofNanos(-1));
        }
        equal(0, Upcalls.sizeSince(tokens));
    }

    /** A dependent of another future keeps the thread that takes what has ended. */
    private static void late() throws Exception {
        long tokens = Upcalls.lastToken();
        CountDownLatch release = new CountDownLatch(1);
        Strategy strategy = Strategy.create(SERVER);
        try (Strategy other = Strategy.create(SERVER)) {
            CountDownLatch go = new CountDownLatch(1);
            CountDownLatch inside = new CountDownLatch(1);
            Request<Boolean> request = other.submit(replica -> go.await(1, TimeUnit.HOURS), SubmitOptions.DEFAULT);
            request.thenRun(() -> {
                inside.countDown();
                try {
                    release.await();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            });
            Batcher<Integer, String> batcher = Batcher.create(strategy, (replica, batch) -> {
                for (int i = 0; i < batch.size(); i++) {
                    batch.emit(i, "token");
                }
            }, BatcherOptions.DEFAULT.continuous(true).maxResults(2));
            Item<String> item = batcher.submit(1);
            equal(Optional.of("token"), item.take());
            go.countDown();
            inside.await();
            item.cancel(true);
            FutureTask<Void> closing = new FutureTask<>(() -> {
                strategy.closeInstances(Duration.ofNanos(-1));
                batcher.close();
                strategy.close();
            }, null);
            Thread thread = new Thread(closing);
            thread.start();
            while (!closing.isDone() && thread.getState() != Thread.State.WAITING) {
                Thread.onSpinWait();
            }
            release.countDown();
            closing.get();
        } finally {
            release.countDown();
        }
        equal(0, Upcalls.sizeSince(tokens));
    }
}
