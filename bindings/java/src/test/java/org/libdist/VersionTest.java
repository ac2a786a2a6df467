// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/** Versions: what replicas read, replaced while they run. */
final class VersionTest {
    private static final StrategyOptions SERVER =
            StrategyOptions.DEFAULT.numReplicas(2).threads(ReplicaThreads.LIBRARY);
    private static final int ROUNDS = 50;

    private VersionTest() {}

    static void addTo(Tap tap) {
        tap.add("versions are swapped under load", VersionTest::swapped);
        tap.add("a version stays while it is seen", VersionTest::stays);
        tap.add("versions of a poor kind", VersionTest::misuse);
    }

    private static final class Model {
        final long number;
        final AtomicInteger ended = new AtomicInteger();

        Model(long number) {
            this.number = number;
        }
    }

    private static int ended(List<Model> models) {
        int sum = 0;
        for (Model each : models) {
            check(each.ended.get() <= 1, each.number, each.ended);
            sum += each.ended.get();
        }
        return sum;
    }

    private static void swapped() throws Exception {
        List<Model> all = new ArrayList<>();
        long tokens = Upcalls.lastToken();
        try (Strategy strategy = Strategy.create(SERVER);
                Versions<Model> models = Versions.create(model -> model.ended.incrementAndGet())) {
            List<Request<Boolean>> requests = new ArrayList<>();
            for (int number = 1; number <= ROUNDS; number++) {
                all.add(new Model(number));
                equal((long) number, models.publish(all.get(number - 1)));
                equal((long) number, models.latest());
                for (int i = 0; i < 4; i++) {
                    requests.add(strategy.submit(replica -> {
                        Version<Model> before = models.get(replica);
                        Thread.yield();
                        return before.equals(models.get(replica)) && before.content().ended.get() == 0
                                && before.number() == before.content().number;
                    }, SubmitOptions.DEFAULT.requestId(1000 + number)));
                }
            }
            models.await(ROUNDS);
            equal(ROUNDS - 1, ended(all));
            equal(0, all.get(ROUNDS - 1).ended.get());
            for (Request<Boolean> each : requests) {
                check(each.get(), each);
            }
            strategy.closeInstances(Duration.ofNanos(-1));
            equal(ROUNDS - 1, ended(all));
        }
        equal(ROUNDS, ended(all));
        equal(0, Upcalls.sizeSince(tokens));
    }

    private static void stays() throws Exception {
        List<String> ended = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch inside = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        try (Strategy strategy = Strategy.create(SERVER);
                Versions<String> texts = Versions.create(text -> {
                    ended.add(text);
                    throw new IllegalStateException(text);
                })) {
            texts.publish("one");
            Request<String> request = strategy.submit(replica -> {
                String before = texts.get(replica).content();
                equal(2L, texts.publish("two"));
                equal(Status.FAILED_PRECONDITION, thrown(DistException.class, () -> texts.await(2)).status());
                inside.countDown();
                release.await();
                return before + " " + texts.get(replica);
            }, SubmitOptions.DEFAULT);
            inside.await();
            equal(Status.DEADLINE_EXCEEDED,
                    thrown(DistException.class, () -> texts.await(2, Duration.ZERO)).status());
            equal(List.of(), ended);
            release.countDown();
            texts.await(2);
            equal(List.of("one"), ended);
            equal("one " + new Version<>("one", 1), request.get());
        }
        equal(List.of("one", "two"), ended);
    }

    private static void misuse() {
        AtomicReference<Replica> gone = new AtomicReference<>();
        Versions<Integer> numbers = Versions.create();
        try (Strategy strategy = Strategy.create(2)) {
            equal(0L, numbers.latest());
            equal(Status.INVALID_ARGUMENT, thrown(DistException.class, () -> numbers.await(1)).status());
            strategy.run(replica -> {
                DistException e = thrown(DistException.class, () -> numbers.get(replica));
                equal(Status.FAILED_PRECONDITION, e.status());
            });
            numbers.publish(5);
            strategy.run(replica -> {
                equal(5, numbers.get(replica).content());
                gone.set(replica);
            });
            equal(Status.FAILED_PRECONDITION,
                    thrown(DistException.class, () -> numbers.get(gone.get())).status());
            numbers.close();
            numbers.close();
            strategy.run(replica -> {
                DistException e = thrown(DistException.class, () -> numbers.get(replica));
                equal(Status.FAILED_PRECONDITION, e.status());
            });
        }
        equal(Status.FAILED_PRECONDITION, thrown(DistException.class, () -> numbers.publish(6)).status());
        equal(Status.FAILED_PRECONDITION, thrown(DistException.class, numbers::latest).status());
        DistException e = thrown(DistException.class, () -> Strategy.create(SERVER.cpus(-1)));
        equal(Status.INVALID_ARGUMENT, e.status());
    }
}
