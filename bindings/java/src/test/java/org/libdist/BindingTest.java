// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ReadOnlyBufferException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.libdist.internal.DistModuleConstants;

/** The Java binding through libdist itself. */
public final class BindingTest {
    private BindingTest() {}

    public static void main(String[] args) {
        Tap tap = new Tap();
        tap.add("run calls every replica once", BindingTest::runCallsEveryReplicaOnce);
        tap.add("all-reduce of every element type", BindingTest::allReduceOfEveryType);
        tap.add("all-reduce by every operator", BindingTest::allReduceByEveryOperator);
        tap.add("position and limit choose the part", BindingTest::partOfABuffer);
        tap.add("empty buffers", BindingTest::emptyBuffers);
        tap.add("broadcast and barrier", BindingTest::broadcastAndBarrier);
        tap.add("the body's exception comes back as itself", BindingTest::ownExceptionComesBack);
        tap.add("errors and stack overflows in the body", BindingTest::errorsInTheBody);
        tap.add("a mismatch is reported with fields", BindingTest::reportHasFields);
        tap.add("cancel ends a blocked collective", BindingTest::cancelEndsACollective);
        tap.add("a collective's own timeout", BindingTest::timeoutOfOneCollective);
        tap.add("heap, foreign order, read-only and null buffers", BindingTest::badBuffers);
        tap.add("misuse is refused", BindingTest::misuse);
        tap.add("replica threads are daemons with names", BindingTest::threadsAreDaemons);
        tap.add("garbage collection under load", BindingTest::garbageCollection);
        tap.add("enums are the header's constants", BindingTest::enumsAreTheHeaders);
        CollectivesTest.addTo(tap);
        ValuesTest.addTo(tap);
        CrossReplicaTest.addTo(tap);
        TopologyTest.addTo(tap);
        MeshTest.addTo(tap);
        ClusterTest.addTo(tap);
        NetworkTest.addTo(tap);
        InputTest.addTo(tap);
        PreemptionTest.addTo(tap);
        ServeTest.addTo(tap);
        BatchTest.addTo(tap);
        VersionTest.addTo(tap);
        RpcTest.addTo(tap);
        ServersTest.addTo(tap);
        BadInputTest.addTo(tap);
        NamesTest.addTo(tap);
        NullsTest.addTo(tap);
        OptionsTest.addTo(tap);
        FailureTest.addTo(tap);
        ExecutorTest.addTo(tap);
        BudgetTest.addTo(tap);
        MemoryTest.addTo(tap);
        SoakTest.addTo(tap);
        LoaderTest.addTo(tap);
        InfoTest.addTo(tap);
        tap.runAll();
    }

    static Strategy strategy(int replicas, boolean callerIsReplica) {
        return Strategy.create(StrategyOptions.DEFAULT.numReplicas(replicas).threads(
                callerIsReplica ? ReplicaThreads.CALLER : ReplicaThreads.LIBRARY));
    }

    static void usable(Strategy strategy) {
        strategy.run(replica -> {
            FloatBuffer one = DirectBuffers.of(1f);
            replica.allReduce(ReduceOp.SUM, one);
            equal((float) replica.numReplicas(), one.get(0));
        });
    }

    private static void runCallsEveryReplicaOnce() {
        for (boolean caller : new boolean[] {true, false}) {
            try (Strategy strategy = strategy(5, caller)) {
                equal(5, strategy.numReplicas());
                AtomicInteger[] calls = new AtomicInteger[5];
                for (int i = 0; i < calls.length; i++) {
                    calls[i] = new AtomicInteger();
                }
                strategy.run(replica -> {
                    equal(5, replica.numReplicas());
                    calls[replica.id()].incrementAndGet();
                });
                for (AtomicInteger count : calls) {
                    equal(1, count.get());
                }
            }
        }
    }

    private static void allReduceOfEveryType() {
        try (Strategy strategy = Strategy.create(3)) {
            strategy.run(replica -> {
                FloatBuffer floats = DirectBuffers.of(1.5f, replica.id());
                replica.allReduce(ReduceOp.SUM, floats);
                equal(DirectBuffers.of(4.5f, 3f), floats);
                DoubleBuffer doubles = DirectBuffers.of(1.5, replica.id());
                replica.allReduce(ReduceOp.SUM, doubles);
                equal(DirectBuffers.of(4.5, 3.0), doubles);
                IntBuffer ints = DirectBuffers.of(1 << 30, replica.id());
                replica.allReduce(ReduceOp.SUM, ints);
                equal(DirectBuffers.of(3 * (1 << 30), 3), ints);
                LongBuffer longs = DirectBuffers.of(1L << 40, replica.id());
                replica.allReduce(ReduceOp.SUM, longs);
                equal(DirectBuffers.of(3L << 40, 3L), longs);
            });
        }
    }

    private static void allReduceByEveryOperator() {
        Map<ReduceOp, Double> expected = Map.of(ReduceOp.SUM, 10.0, ReduceOp.MEAN, 2.5, ReduceOp.MIN, 1.0,
                ReduceOp.MAX, 4.0, ReduceOp.PROD, 24.0);
        try (Strategy strategy = Strategy.create(4)) {
            for (ReduceOp op : expected.keySet()) {
                strategy.run(replica -> {
                    DoubleBuffer data = DirectBuffers.of((double) (replica.id() + 1));
                    replica.allReduce(op, data);
                    equal(expected.get(op), data.get(0));
                });
            }
        }
    }

    private static void partOfABuffer() {
        try (Strategy strategy = Strategy.create(2)) {
            strategy.run(replica -> {
                FloatBuffer data = DirectBuffers.of(1f, 2f, 3f, 4f);
                data.position(1).limit(3);
                replica.allReduce(ReduceOp.SUM, data);
                equal(1, data.position());
                equal(3, data.limit());
                data.clear();
                equal(DirectBuffers.of(1f, 4f, 6f, 4f), data);
            });
        }
    }

    private static void emptyBuffers() {
        try (Strategy strategy = Strategy.create(2)) {
            strategy.run(replica -> {
                replica.allReduce(ReduceOp.SUM, DirectBuffers.of(new float[0]));
                replica.broadcast(0, DirectBuffers.of(new long[0]), CollectiveOptions.DEFAULT);
            });
        }
    }

    private static void broadcastAndBarrier() {
        try (Strategy strategy = Strategy.create(4)) {
            AtomicInteger arrived = new AtomicInteger();
            CollectiveOptions start = CollectiveOptions.DEFAULT.tag("start").timeout(Duration.ofMinutes(5));
            strategy.run(replica -> {
                int id = replica.id();
                FloatBuffer floats = DirectBuffers.of((float) id);
                replica.broadcast(3, floats, start);
                DoubleBuffer doubles = DirectBuffers.of((double) id);
                replica.broadcast(2, doubles, start);
                IntBuffer ints = DirectBuffers.of(id, -id);
                replica.broadcast(1, ints, start);
                LongBuffer longs = DirectBuffers.of((long) id);
                replica.broadcast(0, longs, start);
                equal(DirectBuffers.of(3f), floats);
                equal(DirectBuffers.of(2.0), doubles);
                equal(DirectBuffers.of(1, -1), ints);
                equal(DirectBuffers.of(0L), longs);
                arrived.incrementAndGet();
                replica.barrier();
                equal(4, arrived.get());
            });
        }
    }

    private static void ownExceptionComesBack() {
        for (boolean caller : new boolean[] {true, false}) {
            try (Strategy strategy = strategy(4, caller)) {
                IOException own = new IOException("row 7: \uD83D\uDCA5");
                failTwice(strategy, own);
                usable(strategy);
            }
        }
    }

    private static void failTwice(Strategy strategy, IOException own) {
        for (int again = 0; again < 2; again++) { // the same exception twice is two failures
            DistException[] peers = new DistException[4];
            IOException seen = thrown(IOException.class, () -> strategy.run(replica -> {
                if (replica.id() == 2) {
                    throw own;
                }
                try {
                    replica.barrier();
                } catch (DistException e) {
                    peers[replica.id()] = e;
                    throw e;
                }
            }));
            check(seen == own, seen);
            for (int id : new int[] {0, 1, 3}) {
                equal(Status.ABORTED, peers[id].status());
                equal(2, peers[id].replica());
                check(peers[id].getMessage().contains(own.getMessage()), peers[id]);
            }
        }
    }

    private static int descend(int depth) {
        return descend(depth + 1) + 1;
    }

    private static void errorsInTheBody() {
        try (Strategy strategy = Strategy.create(3)) {
            for (int culprit = 0; culprit < 3; culprit++) {
                int id = culprit;
                thrown(StackOverflowError.class, () -> strategy.run(replica -> {
                    if (replica.id() == id) {
                        descend(0);
                    }
                    replica.barrier();
                }));
                NullPointerException npe = thrown(NullPointerException.class, () -> strategy.run(replica -> {
                    Object nothing = replica.id() == id ? null : "";
                    nothing.hashCode();
                    replica.barrier();
                }));
                check(npe.getStackTrace().length > 0, npe);
                usable(strategy);
            }
        }
    }

    private static void reportHasFields() {
        try (Strategy strategy = Strategy.create(3)) {
            DistException report = thrown(DistException.class, () -> strategy.run(replica -> {
                replica.barrier();
                FloatBuffer data = DirectBuffers.of(new float[replica.id() == 1 ? 5 : 4]);
                replica.allReduce(ReduceOp.SUM, data, CollectiveOptions.DEFAULT.tag("ünï\uD83D\uDCA5"));
            }));
            equal(Status.INVALID_ARGUMENT, report.status());
            equal(1, report.replica());
            equal(Collective.ALL_REDUCE, report.collective());
            equal(2L, report.sequence());
            equal("ünï\uD83D\uDCA5", report.tag());
            equal(0, report.worker());
            equal(0, report.group());
            check(!report.expected().isEmpty() && !report.received().isEmpty(), report);
            usable(strategy);
        }
    }

    private static void cancelEndsACollective() {
        try (Strategy strategy = Strategy.create(3)) {
            CountDownLatch ended = new CountDownLatch(2);
            DistException e = thrown(DistException.class, () -> strategy.run(replica -> {
                if (replica.id() == 0) {
                    strategy.cancel();
                    ended.await(); // never joins the barrier that the others are in
                    return;
                }
                try {
                    replica.barrier();
                } finally {
                    ended.countDown();
                }
            }));
            equal(Status.CANCELLED, e.status());
            usable(strategy);
        }
    }

    private static void timeoutOfOneCollective() {
        try (Strategy strategy = Strategy.create(2)) {
            CountDownLatch reported = new CountDownLatch(1);
            DistException e = thrown(DistException.class, () -> strategy.run(replica -> {
                if (replica.id() == 0) {
                    reported.await();
                    return;
                }
                try {
                    replica.barrier(CollectiveOptions.DEFAULT.timeout(Duration.ofMillis(1)));
                } finally {
                    reported.countDown();
                }
            }));
            equal(Status.DEADLINE_EXCEEDED, e.status());
            usable(strategy);
        }
    }

    private static void badBuffers() {
        ByteOrder foreign = ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? ByteOrder.LITTLE_ENDIAN
                                                                            : ByteOrder.BIG_ENDIAN;
        try (Strategy strategy = Strategy.create(1)) {
            strategy.run(replica -> {
                thrown(IllegalArgumentException.class,
                        () -> replica.allReduce(ReduceOp.SUM, FloatBuffer.allocate(4)));
                thrown(IllegalArgumentException.class,
                        () -> replica.allReduce(ReduceOp.SUM,
                                        ByteBuffer.allocateDirect(16).order(foreign).asFloatBuffer()));
                thrown(ReadOnlyBufferException.class,
                        () -> replica.allReduce(ReduceOp.SUM, DirectBuffers.of(1f).asReadOnlyBuffer()));
                thrown(NullPointerException.class, () -> replica.allReduce(ReduceOp.SUM, (FloatBuffer) null));
                thrown(NullPointerException.class, () -> replica.allReduce(null, DirectBuffers.of(1f)));
                thrown(NullPointerException.class, () -> replica.barrier(null));
            });
            usable(strategy);
        }
    }

    private static void misuse() {
        DistException negative = thrown(DistException.class, () -> Strategy.create(-1));
        equal(Status.INVALID_ARGUMENT, negative.status());
        check(!negative.getMessage().isEmpty());
        DistException tooMany = thrown(DistException.class, () -> Strategy.create(Integer.MAX_VALUE));
        equal(Status.RESOURCE_EXHAUSTED, tooMany.status());
        check(tooMany.getMessage().contains("threads"), tooMany);
        Strategy strategy = Strategy.create(2);
        Replica[] kept = new Replica[1];
        strategy.run(replica -> {
            kept[0] = replica;
            equal(Status.FAILED_PRECONDITION,
                    thrown(DistException.class, () -> strategy.run(r -> {})).status());
            equal(Status.FAILED_PRECONDITION, thrown(DistException.class, strategy::close).status());
        });
        equal(Status.FAILED_PRECONDITION, thrown(DistException.class, kept[0] ::barrier).status());
        thrown(NullPointerException.class, () -> strategy.run(null));
        strategy.close();
        strategy.close();
        equal(Status.FAILED_PRECONDITION, thrown(DistException.class, () -> strategy.run(r -> {})).status());
        equal(Status.FAILED_PRECONDITION, thrown(DistException.class, strategy::cancel).status());
    }

    private static void threadsAreDaemons() {
        try (Strategy strategy = strategy(3, false)) {
            Thread[] first = new Thread[3];
            Thread[] second = new Thread[3];
            strategy.run(replica -> first[replica.id()] = Thread.currentThread());
            strategy.run(replica -> second[replica.id()] = Thread.currentThread());
            for (int id = 0; id < 3; id++) {
                check(first[id].isDaemon(), first[id]);
                check(first[id] == second[id], first[id], second[id]); // attached once, not for each call
                check(first[id].getName().startsWith("dist"), first[id].getName());
            }
        }
    }

    private static void garbageCollection() {
        try (Strategy strategy = Strategy.create(4)) {
            strategy.run(replica -> {
                for (int i = 0; i < 200; i++) {
                    FloatBuffer data = DirectBuffers.of(new float[256]);
                    data.put(255, 1f);
                    replica.allReduce(ReduceOp.SUM, data);
                    equal(4f, data.get(255));
                    if (i % 50 == replica.id()) {
                        System.gc();
                    }
                }
            });
        }
    }

    private static void enumsAreTheHeaders() throws ReflectiveOperationException {
        for (Status status : Status.values()) {
            equal(status.code(), DistModuleConstants.class.getField("DIST_" + status).getInt(null));
            equal(status.name(), Dist.statusName(status.code()));
        }
        for (Collective collective : Collective.values()) {
            if (collective != Collective.OTHER) {
                equal(collective.code,
                        DistModuleConstants.class.getField("DIST_COLLECTIVE_" + collective).getInt(null));
            }
        }
    }
}
