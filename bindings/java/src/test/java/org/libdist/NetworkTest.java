// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.FutureTask;
import java.util.stream.IntStream;

/** Workers that are strategies of this process, each on a thread of its own. */
final class NetworkTest {
    private NetworkTest() {}

    static void addTo(Tap tap) {
        tap.add("a worker knows its place", NetworkTest::place);
        tap.add("workers of one process train", NetworkTest::train);
        tap.add("workers read the rows of one process", NetworkTest::asOneProcess);
        tap.add("workers fail together", NetworkTest::fail);
        tap.add("a worker that does not come", NetworkTest::absent);
        tap.add("networks that do not fit", NetworkTest::misuse);
        tap.add("workers that cannot re-form", NetworkTest::reforms);
        tap.add("an interrupt ends a wait for other workers", NetworkTest::interrupted);
        tap.add("a strategy that is closed while it waits", NetworkTest::closedWhileItWaits);
        tap.add("a strategy that is closed while a run comes", NetworkTest::closedWhileOneComes);
        tap.add("workers are collected in any order", NetworkTest::collected);
    }

    private static StrategyOptions options(int workers, int me) {
        List<String> addresses = IntStream.range(0, workers).mapToObj(w -> "w" + w + ":1").toList();
        try (ClusterSpec spec = ClusterSpec.create(List.of(new ClusterJob("worker", addresses)))) {
            return StrategyOptions.DEFAULT.kind(StrategyKind.MULTI_WORKER_MIRRORED)
                    .clusterResolver(ClusterResolver.fromSpec(
                            spec, ClusterResolverOptions.DEFAULT.taskType("worker").taskId(me)));
        }
    }

    /** A strategy for each worker, with that many replicas. */
    private static List<Strategy> workers(StrategyOptions threads, int... replicas) {
        List<Strategy> workers = new ArrayList<>();
        try (Network network = Network.create(replicas.length)) { // the strategies keep it
            for (int w = 0; w < replicas.length; w++) {
                StrategyOptions own =
                        options(replicas.length, w).network(network).replicasOfWorkers(replicas);
                workers.add(
                        Strategy.create(threads.executor == null ? own : own.executor(threads.executor)));
            }
        }
        return workers;
    }

    @FunctionalInterface
    private interface Program<T> {
        T on(int worker, Strategy strategy) throws Exception;
    }

    /** One program on all workers, each on a thread of its own. */
    private static <T> List<FutureTask<T>> start(List<Strategy> workers, Program<T> program) {
        List<FutureTask<T>> tasks = new ArrayList<>();
        for (int w = 0; w < workers.size(); w++) {
            int me = w;
            tasks.add(new FutureTask<>(() -> program.on(me, workers.get(me))));
        }
        tasks.forEach(task -> new Thread(task).start());
        return tasks;
    }

    private static Throwable failure(FutureTask<?> task) {
        return thrown(ExecutionException.class, () -> {
            try {
                task.get();
            } catch (ExecutionException e) {
                throw new ExecutionException("it failed", e.getCause());
            }
        }).getCause();
    }

    private static void place() {
        List<Strategy> workers = workers(StrategyOptions.DEFAULT, 2, 1);
        for (int w = 0; w < 2; w++) {
            try (Strategy strategy = workers.get(w)) {
                StrategyProperties place = strategy.properties();
                equal(3, strategy.numReplicas());
                equal(List.of(2, w, 2 - w, 2 * w),
                        List.of(place.numWorkers(), place.worker(), place.numLocalReplicas(),
                                place.firstReplica()));
                equal(w == 0, place.shouldCheckpoint());
                check(place.inMultiWorkerMode() && place.betweenGraph(), place);
                equal("/job:worker/replica:0/task:" + w + "/device:CPU:0", strategy.device(2 * w));
                int other = 2 - 2 * w;
                equal(Status.INVALID_ARGUMENT,
                        thrown(DistException.class, () -> strategy.device(other)).status());
            }
        }
        try (Strategy alone = Strategy.create(2)) {
            StrategyProperties place = alone.properties();
            equal(List.of(0, 2, 0), List.of(place.worker(), place.numLocalReplicas(), place.firstReplica()));
        }
    }

    private static Tensor tensor(float... values) {
        return Tensor.of(DirectBuffers.of(values));
    }

    private static String floats(Value value) {
        try (value) {
            return Arrays.toString(Tensors.toFloats(value.tensor()));
        }
    }

    /** All that waits for other workers; what came of it. */
    private static List<String> everything(Strategy strategy) throws Exception {
        StrategyProperties place = strategy.properties();
        List<String> seen = new ArrayList<>();
        try (Variable mirrored = Variable.create(strategy, tensor(10 + place.worker()), // worker 0's counts
                     VariableOptions.DEFAULT.aggregation(Aggregation.SUM));
                Variable onRead = Variable.create(strategy,
                        ()
                                -> Value.createTensor(strategy, tensor(0)),
                        VariableOptions.DEFAULT.aggregation(Aggregation.SUM)
                                .synchronization(Synchronization.ON_READ))) {
            strategy.run(replica -> {
                equal(3, replica.numReplicas());
                Tensor mine = tensor(replica.id() + 1);
                mirrored.assign(replica, Assign.ADD, mine);
                onRead.assign(replica, Assign.ADD, mine);
            });
            seen.add(floats(mirrored.read(strategy)));
            seen.add(floats(onRead.read(strategy)));
            try (Value scale = Value.createTensor(strategy, tensor(2));
                    Value rows = strategy.run((replica, args, kwargs) -> {
                        float[] mine = new float[replica.id() + 1]; // of another length on each replica
                        for (int i = 0; i < mine.length; i++) {
                            mine[i] = args.item(0).tensor().floats().get(0) * (10 * replica.id() + i);
                        }
                        return Value.createTensor(strategy, tensor(mine));
                    }, scale)) {
                seen.add(floats(strategy.gather(rows, 0)));
                seen.add(floats(strategy.reduce(ReduceOp.SUM, rows, 0)));
            }
        }
        return seen;
    }

    private static void train() throws Exception {
        List<String> wanted = List.of("[16.0]", "[6.0]", "[0.0, 20.0, 22.0, 40.0, 42.0, 44.0]", "[168.0]");
        ExecutorService executor = Executors.newFixedThreadPool(3);
        for (StrategyOptions threads :
                List.of(StrategyOptions.DEFAULT, StrategyOptions.DEFAULT.executor(executor))) {
            List<Strategy> workers = workers(threads, 2, 1);
            for (int again = 0; again < 3; again++) {
                for (FutureTask<List<String>> task : start(workers, (w, strategy) -> {
                         System.gc(); // whatever is collected now: nothing of another worker's
                         return everything(strategy);
                     })) {
                    equal(wanted, task.get());
                }
            }
            workers.forEach(Strategy::close);
        }
        executor.shutdown();
    }

    private record Trained(Map<Integer, List<String>> rows, String variable) {}

    /** Trains on some rows: those of each replica, a text a step, and what came of it. */
    private static Trained readRows(Strategy strategy, boolean asOneProcess) throws Exception {
        Map<Integer, List<String>> rows = new ConcurrentHashMap<>();
        Tensor all = tensor(.1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f, .9f, 1, 1.1f);
        DatasetOptions options = DatasetOptions.DEFAULT.globalBatchSize(5).shuffle(3).asOneProcess(asOneProcess);
        try (Variable variable = Variable.create(
                     strategy, tensor(0), VariableOptions.DEFAULT.aggregation(Aggregation.MEAN));
                Dataset dataset = Dataset.fromTensors(strategy, List.of(all), options)) {
            for (Value batch : dataset) {
                try (batch) {
                    strategy.run((replica, args, kwargs) -> {
                        float[] own = Tensors.toFloats(args.item(0).tensor());
                        rows.computeIfAbsent(replica.id(), id -> new ArrayList<>()).add(Arrays.toString(own));
                        float sum = 0;
                        for (float x : own) {
                            sum += x * (replica.id() + 1);
                        }
                        variable.assign(replica, Assign.ADD, tensor(sum));
                        return null;
                    }, batch);
                }
            }
            return new Trained(rows, floats(variable.read(strategy)));
        }
    }

    private static void asOneProcess() throws Exception {
        Trained wanted;
        try (Strategy one = Strategy.create(3)) {
            wanted = readRows(one, false);
        }
        equal(3, wanted.rows().get(2).size());
        for (boolean asOne : new boolean[] {true, false}) {
            List<Strategy> workers = workers(StrategyOptions.DEFAULT, 2, 1);
            List<FutureTask<Trained>> tasks = start(workers, (w, strategy) -> readRows(strategy, asOne));
            Map<Integer, List<String>> rows = new HashMap<>();
            for (FutureTask<Trained> task : tasks) {
                rows.putAll(task.get().rows());
                equal(asOne, task.get().variable().equals(wanted.variable()));
            }
            equal(asOne, rows.equals(wanted.rows()));
            equal(3, rows.size());
            DatasetOptions wrong = DatasetOptions.DEFAULT.asOneProcess(true).shardPolicy(ShardPolicy.OFF);
            refused(Status.INVALID_ARGUMENT, "asOneProcess is set",
                    () -> Dataset.fromTensors(workers.get(0), List.of(tensor(1, 2)), wrong.globalBatchSize(2)));
            workers.forEach(Strategy::close);
        }
    }

    private static void fail() throws Exception {
        IOException mine = new IOException("boom");
        List<Strategy> workers = workers(StrategyOptions.DEFAULT, 1, 2);
        List<FutureTask<Void>> tasks = start(workers, (w, strategy) -> {
            strategy.run(replica -> {
                if (replica.id() == 2) {
                    throw mine;
                }
                replica.barrier();
            });
            return null;
        });
        check(failure(tasks.get(1)) == mine);
        DistException report = (DistException) failure(tasks.get(0));
        equal(1, report.worker());
        check(report.getMessage().contains("boom"), report);
        for (FutureTask<Void> task : start(workers, (w, strategy) -> {
                 strategy.run(replica -> replica.barrier());
                 return (Void) null;
             })) {
            task.get();
        }
        workers.forEach(Strategy::close);
    }

    private static void absent() {
        Network network = Network.create(2);
        StrategyOptions hurried = options(2, 0).network(network).numReplicas(1).timeout(Duration.ofMillis(20));
        try (Strategy strategy = Strategy.create(hurried)) {
            for (Tap.Test test : List.<Tap.Test>of(()
                                                           -> Variable.create(strategy, "v", tensor(1)),
                         () -> strategy.run(replica -> replica.barrier()))) {
                DistException late = thrown(DistException.class, test);
                equal(Status.DEADLINE_EXCEEDED, late.status());
                equal(1, late.worker());
                check(late.getMessage().contains("worker 1"), late);
            }
        }
        try (Strategy unreached = Strategy.create(options(2, 1).numReplicas(1))) {
            DistException report =
                    thrown(DistException.class, () -> unreached.run(replica -> replica.barrier()));
            equal(Status.UNAVAILABLE, report.status());
            check(report.hint().contains("StrategyOptions.network"), report.hint());
        }
        network.close();
    }

    private static void refused(Status status, String words, Tap.Test test) {
        DistException e = thrown(DistException.class, test);
        equal(status, e.status());
        check(e.getMessage().contains(words), e);
    }

    private static void misuse() {
        for (int n : new int[] {0, -1, Integer.MIN_VALUE}) {
            refused(Status.INVALID_ARGUMENT, "", () -> Network.create(n));
        }
        refused(Status.INVALID_ARGUMENT, "creditBytes is 100", () -> Network.create(2, NetworkOptions.DEFAULT.creditBytes(100)));
        Network network = Network.create(2, NetworkOptions.DEFAULT.creditBytes(1 << 16));
        refused(Status.INVALID_ARGUMENT, "MULTI_WORKER_MIRRORED",
                () -> Strategy.create(StrategyOptions.DEFAULT.numReplicas(1).network(network)));
        StrategyOptions first = options(2, 0).numReplicas(1).network(network);
        refused(Status.INVALID_ARGUMENT, "the cluster has 2 workers",
                () -> Strategy.create(first.replicasOfWorkers(1)));
        refused(Status.INVALID_ARGUMENT, "replicasOfWorkers[1] is 0",
                () -> Strategy.create(first.replicasOfWorkers(1, 0)));
        refused(Status.INVALID_ARGUMENT, "stagingBytes is -1", () -> Strategy.create(first.stagingBytes(-1)));
        Strategy strategy = Strategy.create(first.stagingBytes(1));
        refused(Status.FAILED_PRECONDITION, "joined this network", () -> Strategy.create(first));
        network.close();
        network.close();
        refused(Status.FAILED_PRECONDITION, "network is closed",
                () -> Strategy.create(options(2, 1).numReplicas(1).network(network)));
        strategy.close();
    }

    /** Whom nothing leads to. */
    private static StrategyOptions apart(int workers) {
        return options(workers, 0).numReplicas(1).transport(Transport.NONE).reform(Reform.AT_NEXT_RUN);
    }

    private static void reforms() {
        for (StrategyOptions alone : List.of(StrategyOptions.DEFAULT.numReplicas(2), apart(1))) {
            try (Strategy strategy = Strategy.create(alone)) {
                refused(Status.FAILED_PRECONDITION, "Strategy.reform(): the strategy has only one worker",
                        strategy::reform);
                equal(false, strategy.isReformDue());
                StrategyProperties p = strategy.properties();
                equal(List.of(0, 0, 0), List.of(p.generation(), p.numJoined(), p.numLeft()));
            }
        }
        refused(Status.INVALID_ARGUMENT, "MULTI_WORKER_MIRRORED",
                () -> Strategy.create(StrategyOptions.DEFAULT.reform(Reform.AT_NEXT_RUN)));
        Strategy closed;
        try (Strategy strategy = Strategy.create(apart(2))) {
            closed = strategy;
            for (int workers : new int[] {-1, 3}) {
                refused(Status.INVALID_ARGUMENT, "ReformOptions.minWorkers is " + workers,
                        () -> strategy.reform(ReformOptions.DEFAULT.minWorkers(workers)));
            }
            refused(Status.INVALID_ARGUMENT, "ReformOptions.window is -1",
                    () -> strategy.reform(ReformOptions.DEFAULT.window(Duration.ofNanos(-1))));
        }
        refused(Status.FAILED_PRECONDITION, "closed",
                () -> closed.reform(ReformOptions.DEFAULT.timeout(Duration.ofSeconds(1))));
        refused(Status.FAILED_PRECONDITION, "closed", closed::isReformDue);
        List<Strategy> together = workers(StrategyOptions.DEFAULT, 1, 1);
        refused(Status.UNIMPLEMENTED, "StrategyOptions.network", together.get(0)::reform);
        together.forEach(Strategy::close);
    }

    /** What waits for the other workers, outside of runs too. */
    private static List<Program<Object>> waits() throws Exception {
        Path folder = Files.createTempDirectory("libdist-test");
        folder.toFile().deleteOnExit();
        Path file = folder.resolve("checkpoint");
        file.toFile().deleteOnExit();
        DatasetOptions pairs = DatasetOptions.DEFAULT.globalBatchSize(2);
        VariableOptions onRead = VariableOptions.DEFAULT.synchronization(Synchronization.ON_READ)
                                         .aggregation(Aggregation.SUM);
        return List.of((w, s)
                               -> Variable.create(s, "v", tensor(1)),
                (w, s)
                        -> Variable.create(s, () -> Value.createTensor(s, tensor(1)), VariableOptions.DEFAULT),
                (w, s)
                        -> s.reduce(ReduceOp.SUM, Value.createTensor(s, tensor(1))),
                (w, s)
                        -> s.reduceTo(ReduceOp.SUM, Value.createTensor(s, tensor(1)), null),
                (w, s)
                        -> s.batchReduceTo(ReduceOp.SUM, List.of(Value.createTensor(s, tensor(1))), null),
                (w, s)
                        -> s.gather(Value.createTensor(s, tensor(1)), 0),
                (w, s)
                        -> Dataset.fromTensors(s, List.of(tensor(1, 2)), pairs).iterator().next(),
                (w, s)
                        -> Dataset.fromTensors(s, List.of(tensor(1, 2)), pairs).iterator().hasNext(),
                (w, s)
                        -> Dataset.fromTensors(s, List.of(tensor(1, 2)), pairs).reduce(null, (all, one) -> one),
                (w, s)
                        -> Metric.create(s, MetricKind.SUM, "m").result(s),
                (w, s) -> {
                    Checkpoint.save(s, file, List.of());
                    return null;
                },
                (w, s) -> {
                    s.run(replica -> replica.barrier());
                    return null;
                });
    }

    /** A worker whose peer makes no call. */
    private static Strategy waiting(Network network) {
        return Strategy.create(options(2, 0).network(network).numReplicas(1).timeout(Duration.ofMinutes(5)));
    }

    private static void interrupted() throws Exception {
        for (Program<Object> wait : waits()) {
            for (boolean before : new boolean[] {false, true}) {
                CountDownLatch begun = new CountDownLatch(1);
                Network network = Network.create(2);
                try (Strategy strategy = waiting(network)) {
                    boolean[] still = new boolean[1];
                    FutureTask<Object> task = new FutureTask<>(() -> {
                        if (before) {
                            Thread.currentThread().interrupt();
                        }
                        begun.countDown();
                        try {
                            return wait.on(0, strategy);
                        } finally {
                            still[0] = Thread.currentThread().isInterrupted();
                        }
                    });
                    Thread thread = new Thread(task);
                    thread.start();
                    begun.await();
                    if (!before) {
                        thread.interrupt();
                    }
                    equal(Status.CANCELLED, ((DistException) failure(task)).status());
                    check(still[0]);
                }
                network.close();
            }
        }
        // Who was interrupted before its call has told the others, too.
        List<Strategy> workers = workers(StrategyOptions.DEFAULT, 1, 1);
        List<FutureTask<Object>> tasks = start(workers, (w, s) -> {
            if (w == 1) {
                Thread.currentThread().interrupt();
            }
            s.run(replica -> replica.barrier());
            return null;
        });
        equal(Status.CANCELLED, ((DistException) failure(tasks.get(1))).status());
        DistException told = (DistException) failure(tasks.get(0));
        equal(Status.ABORTED, told.status());
        equal(1, told.worker());
        workers.forEach(Strategy::close);
    }

    private static void closedWhileItWaits() throws Exception {
        for (Program<Object> wait : waits()) {
            for (int i = 0; i < 20; i++) {
                Network network = Network.create(2);
                Strategy strategy = waiting(network);
                CountDownLatch begun = new CountDownLatch(1);
                FutureTask<Object> task = new FutureTask<>(() -> {
                    begun.countDown();
                    return wait.on(0, strategy);
                });
                new Thread(task).start();
                begun.await();
                strategy.close(Duration.ofMinutes(5));
                Status status = ((DistException) failure(task)).status();
                // Where close() was first, there is no strategy.
                check(List.of(Status.CANCELLED, Status.FAILED_PRECONDITION, Status.UNAVAILABLE).contains(status),
                        status);
                network.close();
            }
        }
    }

    /** libdist must not take the strategy from a run that is about to call it. */
    private static void closedWhileOneComes() throws Exception {
        for (int i = 0; i < 1500; i++) {
            Strategy strategy = Strategy.create(1);
            CountDownLatch begun = new CountDownLatch(1);
            FutureTask<Status> task = new FutureTask<>(() -> {
                begun.countDown();
                try {
                    strategy.run(replica -> replica.barrier());
                    return Status.OK;
                } catch (DistException e) {
                    return e.status();
                }
            });
            new Thread(task).start();
            begun.await();
            for (int spins = i % 200 * 20; spins > 0; spins--) { // another moment each time
                Thread.onSpinWait();
            }
            strategy.close(Duration.ofMinutes(1));
            check(List.of(Status.OK, Status.CANCELLED, Status.FAILED_PRECONDITION).contains(task.get()));
        }
    }

    private static void collected() {
        for (int order = 0; order < 3; order++) {
            Network network = Network.create(2);
            Object[] all = {network, Strategy.create(options(2, 0).numReplicas(1).network(network)),
                    Strategy.create(options(2, 1).numReplicas(1).network(network))};
            network = null;
            for (int i = 0; i < all.length; i++) {
                all[(order + i) % all.length] = null;
                System.gc();
            }
        }
    }
}
