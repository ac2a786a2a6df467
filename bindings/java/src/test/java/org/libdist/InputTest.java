// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.floats;
import static org.libdist.Tap.thrown;
import static org.libdist.Tensors.copyOf;
import static org.libdist.Tensors.scalar;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/** Datasets, metrics, losses, checkpoints, scopes, names, and what can be seen inside. */
final class InputTest {
    private InputTest() {}

    static void addTo(Tap tap) {
        tap.add("datasets of tensors", InputTest::ofTensors);
        tap.add("datasets of sources, files and functions", InputTest::ofFunctions);
        tap.add("a source's exception comes out of the iterator", InputTest::brokenSources);
        tap.add("metrics and losses", InputTest::metrics);
        tap.add("checkpoints", InputTest::checkpoints);
        tap.add("scopes and the current strategy", InputTest::scopes);
        tap.add("looking inside", InputTest::inside);
        tap.add("names and options", InputTest::names);
        tap.add("a dataset of one tensor, by the shortest loop", InputTest::oneTensor);
        tap.add("threads of the program's own", InputTest::hostThreads);
    }

    /** As Dataset's own documentation writes it. */
    private static void oneTensor() {
        try (Strategy strategy = Strategy.create(2); Dataset dataset = Dataset.fromTensors(strategy,
                                                          List.of(copyOf(new float[] {0, 1, 2, 3, 4, 5, 6})),
                                                          DatasetOptions.DEFAULT.globalBatchSize(4))) {
            AtomicInteger rows = new AtomicInteger();
            for (Value batch : dataset) {
                try (batch) {
                    strategy.run((replica, args, kwargs) -> {
                        rows.addAndGet((int) args.item(0).tensor().size());
                        return null;
                    }, batch);
                }
            }
            equal(7, rows.get());
            Value one = Value.createTensor(strategy, scalar(1f));
            strategy.run(replica -> replica.mergeCall((s, args, kwargs) -> {
                equal(1, args.size());
                return null;
            }, one, null, CollectiveOptions.DEFAULT));
            Variable variable = Variable.create(strategy, "w", scalar(1f));
            equal(null, variable.update(strategy, (place, args, kwargs) -> {
                equal(one, args.item(0));
                return null;
            }, one));
        }
    }

    private static void ofTensors() {
        try (Strategy strategy = Strategy.create(2); Dataset dataset = Dataset.fromTensors(strategy,
                                                          List.of(copyOf(new float[] {0, 1, 2, 3, 4, 5, 6})),
                                                          DatasetOptions.DEFAULT.globalBatchSize(4))) {
            List<String> batches = new ArrayList<>();
            for (Value batch : dataset) {
                try (batch) {
                    batches.add(batch.describe());
                }
            }
            equal(List.of("PerReplica: 0: f32[2] [0, 1], 1: f32[2] [2, 3]",
                          "PerReplica: 0: f32[2] [4, 5], 1: f32[1] [6]"),
                    batches);
            try (BatchIterator pass = dataset.iterator()) {
                pass.next().close();
                Position position = pass.position();
                check(pass.hasNext());
                equal(position, pass.position()); // what hasNext() has asked for does not count
                Value second = pass.next();
                check(!pass.hasNext() && pass.nextOptional().isEmpty());
                thrown(NoSuchElementException.class, pass::next);
                equal(second.describe(), dataset.iterator(position).next().describe());
            }
            equal("PerReplica: 0: \"f32[?]\", 1: \"f32[?]\"", dataset.elementSpec().describe());
            Value count = dataset.reduce(Value.createTensor(strategy, scalar(0L)),
                    (state, batch)
                            -> Value.createTensor(strategy, scalar(state.tensor().longs().get(0) + 1)));
            equal("i64 2", count.describe());
            thrown(IOException.class,
                    () -> dataset.reduce(null, (state, batch) -> { throw new IOException(); }));
            dataset.checkShards(0);
            check(dataset.explain().contains("7"), dataset.explain());
            thrown(DistException.class,
                    () -> Dataset.fromTensors(strategy, List.of(), DatasetOptions.DEFAULT));
        }
    }

    private static void ofFunctions() {
        long before = Upcalls.lastToken();
        try (Strategy strategy = Strategy.create(2)) {
            SourceFunction squares = index -> index < 4 ? Value.createTensor(strategy, scalar(index * index)) : null;
            try (Dataset dataset = Dataset.fromSource(
                         strategy, squares, DatasetOptions.DEFAULT.globalBatchSize(4))) {
                equal("PerReplica: 0: i64[2] [0, 1], 1: i64[2] [4, 9]", dataset.iterator().next().describe());
            }
            try (Dataset files = Dataset.fromFiles(strategy, List.of("a", "b"),
                         (file, name, index) -> index < 1 ? Value.createText(strategy, name + file) : null,
                         DatasetOptions.DEFAULT.globalBatchSize(2))) {
                equal("PerReplica: 0: [\"a0\"], 1: [\"b1\"]",
                        files.iterator().next().describe().replace("{", "").replace("}", ""));
            }
            try (Dataset made = Dataset.fromFunction(strategy, context -> {
                equal(2, context.numReplicasInSync());
                return Dataset.fromTensors(strategy, List.of(copyOf(new int[] {1, 2, 3, 4})),
                        DatasetOptions.DEFAULT.globalBatchSize(context.perReplicaBatchSize(4)));
            }, DatasetOptions.DEFAULT)) {
                equal("PerReplica: 0: i32[2] [1, 2], 1: i32[2] [3, 4]", made.iterator().next().describe());
            }
            thrown(IOException.class, () -> Dataset.fromFunction(strategy, context -> {
                throw new IOException();
            }, DatasetOptions.DEFAULT));
        }
        for (int i = 0; i < 100 && Upcalls.sizeSince(before) > 0; i++) { // iterators that were dropped
            System.gc();
            Thread.yield();
        }
    }

    private static void brokenSources() {
        try (Strategy strategy = Strategy.create(2)) {
            IOException own = new IOException("row 2");
            try (Dataset dataset = Dataset.fromSource(strategy, index -> {
                if (index == 2) {
                    throw own;
                }
                return Value.createTensor(strategy, copyOf(new float[] {index, index}));
            }, DatasetOptions.DEFAULT); BatchIterator pass = dataset.iterator()) {
                pass.next();
                pass.next();
                check(thrown(IOException.class, pass::next) == own);
            }
            BindingTest.usable(strategy);
        }
    }

    private static void metrics() {
        try (Strategy strategy = Strategy.create(2);
                Metric mean = Metric.create(strategy, MetricKind.MEAN, "loss");
                Metric accuracy = Metric.create(strategy, MetricKind.ACCURACY, null)) {
            equal("loss", mean.name());
            equal(MetricKind.ACCURACY, accuracy.kind());
            strategy.run(replica -> {
                mean.update(replica, copyOf(new float[] {replica.id(), 2}));
                accuracy.update(replica, copyOf(new int[] {1, 2}), copyOf(new int[] {1, replica.id()}), null);
                Tensor out = scalar(0f);
                Losses.averageLoss(replica, copyOf(new float[] {1, 2}), null, 4, out);
                equal(0.75, out.item());
                Losses.scaleRegularizationLoss(replica, scalar(3f), out);
                equal(1.5, out.item());
            });
            equal(1.25, mean.result(strategy));
            equal(0.5, accuracy.result(strategy));
            equal("loss", mean.variable().name());
            check(mean.variable() == mean.variable());
            mean.reset(strategy);
            equal(0.0, mean.result(strategy));
        }
    }

    private static void checkpoints() throws IOException {
        Path folder = Files.createTempDirectory("libdist-test");
        Path file = folder.resolve("übung.safetensors");
        try (Strategy strategy = Strategy.create(2)) {
            Variable w = Variable.create(strategy, "w", copyOf(new float[] {1, 2}));
            Position position = new Position(3, 4, 0, 5);
            Checkpoint.save(strategy, file, List.of(w),
                    CheckpointOptions.DEFAULT.position(position)
                            .names(List.of("layer/w"))
                            .metadata(Map.of("note", "zwölf")));
            w.assign(strategy, Assign.SET, Value.createTensor(strategy, copyOf(new float[] {0, 0})));
            Position found = Checkpoint
                                     .load(strategy, file, List.of(w),
                                             CheckpointOptions.DEFAULT.position(new Position(0, 0, 0, 0))
                                                     .names(List.of("layer/w")))
                                     .get();
            equal(position, found);
            floats(w.component(1), 1, 2);
            try (Checkpoint checkpoint = Checkpoint.open(strategy, file)) {
                equal(1, checkpoint.size());
                equal("layer/w", checkpoint.name(0));
                equal(new TensorSpec(DType.F32, List.of(2L)), checkpoint.spec("layer/w"));
                floats(checkpoint.read("layer/w").tensor(), 1, 2);
                floats(checkpoint.map("layer/w", true).tensor(), 1, 2);
                floats(checkpoint.mapAll(false).get("layer/w").tensor(), 1, 2);
                equal(Status.NOT_FOUND, thrown(DistException.class, () -> checkpoint.map("other", false)).status());
                equal("zwölf", checkpoint.metadata().get("note"));
                equal(Status.NOT_FOUND, thrown(DistException.class, () -> checkpoint.read("other")).status());
            }
            Checkpoint.save(strategy, file, List.of(w), CheckpointOptions.DEFAULT.sharded(true));
            try (var files = Files.newDirectoryStream(folder, "*-00001-of-00001.safetensors")) {
                Path shard = files.iterator().next();
                Checkpoint.load(strategy, file, List.of(w));
                Checkpoint.save(strategy, file, List.of(w));
                equal(false, Files.exists(shard));
            }
            thrown(IllegalArgumentException.class,
                    () -> Checkpoint.save(
                                    strategy, file, List.of(w), CheckpointOptions.DEFAULT.names(List.of())));
            equal(Status.NOT_FOUND,
                    thrown(DistException.class,
                            () -> Checkpoint.load(strategy, folder.resolve("none"), List.of(w)))
                            .status());
        } finally {
            Files.deleteIfExists(file);
            Files.delete(folder);
        }
    }

    @SuppressWarnings("try") // a scope is there to be closed
    private static void scopes() throws InterruptedException {
        try (Strategy strategy = Strategy.create(2)) {
            check(!Strategy.hasCurrent() && !Strategy.isInCrossReplicaContext());
            equal(StrategyKind.DEFAULT, Strategy.current().kind());
            equal(0, Replica.current().id());
            try (Scope outer = strategy.scope(); Scope inner = strategy.scope()) {
                check(Strategy.current() == strategy && Strategy.isInCrossReplicaContext());
                equal(null, Replica.current());
                thrown(DistException.class, () -> {
                    try (Strategy other = Strategy.create(1)) {
                        other.scope().close();
                    }
                });
            }
            check(!Strategy.hasCurrent());
            strategy.run(replica -> check(Replica.current() == replica));
            Strategy.setCurrent(strategy);
            check(Strategy.current() == strategy);
            Strategy.setCurrent(null);
            Strategy mine = Strategy.current();
            Throwable[] elsewhere = new Throwable[1];
            Thread thread = new Thread(() -> elsewhere[0] = thrown(DistException.class, mine::numReplicas));
            thread.start();
            thread.join();
            equal(Status.FAILED_PRECONDITION, ((DistException) elsewhere[0]).status());
        }
    }

    private static void inside() {
        ConcurrentLinkedQueue<String> lines = new ConcurrentLinkedQueue<>();
        try (Strategy strategy = Strategy.create(
                     StrategyOptions.DEFAULT.numReplicas(3).recordedEvents(2000).log((level, line) -> lines.add(level + line)))) {
            for (int i = 0; i < 3; i++) {
                strategy.run(replica -> replica.barrier(CollectiveOptions.DEFAULT.tag("ünd")));
            }
            check(strategy.explain().contains("the last 2048 events"), strategy.explain());
            check(strategy.traceJson().contains("ünd"));
            check(strategy.metricsText("main").contains("strategy=\"main\""));
            List<Straggler> rows = strategy.stragglers();
            equal("ünd", rows.get(0).tag());
            equal(Collective.BARRIER, rows.get(0).collective());
            StrategyProperties properties = strategy.properties();
            equal(3, properties.numReplicas());
            check(properties.useMergeCall() && !properties.betweenGraph());
            equal(StrategyKind.MIRRORED, strategy.kind());
            check(strategy.device(2).endsWith("CPU:2") && strategy.parameterDevice(0).endsWith("CPU:0"));
            thrown(DistException.class, () -> strategy.device(3));
            check(strategy.clusterResolver().isEmpty());
            equal(200, Dist.version());
            check(!Dist.hasFeature("teleport"));
        }
        for (int wrong : new int[] {-1, (1 << 20) + 1}) {
            DistException refused = thrown(DistException.class,
                    () -> Strategy.create(StrategyOptions.DEFAULT.numReplicas(1).recordedEvents(wrong)));
            equal(Status.INVALID_ARGUMENT, refused.status());
            check(refused.getMessage().contains("recordedEvents is " + wrong), refused.getMessage());
        }
    }

    private static void names() {
        equal("MEAN", ReduceOp.MEAN.tfName());
        equal(ReduceOp.SUM, ReduceOp.fromName("sum"));
        equal(ReduceOp.MEAN, ReduceOp.fromAggregation(Aggregation.MEAN));
        equal(CrossDeviceKind.HOST, CrossDeviceKind.fromName("host"));
        equal(Synchronization.ON_READ, Synchronization.fromName("on_read"));
        equal(Aggregation.ONLY_FIRST_REPLICA, Aggregation.fromName("ONLY_FIRST_REPLICA"));
        equal(InputMode.PER_REPLICA, InputMode.fromName("per_replica"));
        equal(ShardPolicy.OFF, ShardPolicy.fromName("off"));
        equal("ON_WRITE", Synchronization.ON_WRITE.tfName());
        equal("SUM", Aggregation.SUM.tfName());
        equal("PER_WORKER", InputMode.PER_WORKER.tfName());
        equal("HINT", ShardPolicy.HINT.tfName());
        equal("REDUCTION_TO_ONE_DEVICE", CrossDeviceKind.REDUCTION_TO_ONE_DEVICE.tfName());
        equal(Status.INVALID_ARGUMENT,
                thrown(DistException.class, () -> ShardPolicy.fromName("all")).status());
        equal("/job:localhost/replica:0/task:0/device:CPU:1", Dist.canonicalDevice("CPU:1"));
        check(java.util.Arrays.equals(new long[] {2, 2, 1}, Dist.batchSizesForWorker(5, 3, 1, 0)));
        CommunicationOptions options =
                CommunicationOptions.DEFAULT.timeout(Duration.ofSeconds(5))
                        .merge(CommunicationOptions.DEFAULT.bytesPerPack(8).timeout(Duration.ofSeconds(2)));
        equal(8L, options.bytesPerPack());
        equal(Duration.ofSeconds(2), options.timeout().get());
        equal("CommunicationOptions[bytesPerPack=8, timeout=PT2S]", options.toString());
        check(options.merge(CommunicationOptions.DEFAULT.timeout(Duration.ofSeconds(-1))).timeout().get().isNegative(), options);
        check(CommunicationOptions.DEFAULT.timeout(Duration.ZERO).merge(null).timeout().isEmpty(), options);
        thrown(DistException.class, () -> new InputContext(1, 0, 3).perReplicaBatchSize(4));
    }

    private static void hostThreads() throws InterruptedException {
        StrategyOptions options = StrategyOptions.DEFAULT.numReplicas(2).threads(ReplicaThreads.HOST);
        try (Strategy strategy = Strategy.create(options)) {
            thrown(DistException.class, () -> strategy.run(replica -> {}));
            for (int round = 0; round < 2; round++) {
                IOException own = round == 0 ? null : new IOException("replica 1");
                Throwable[] seen = new Throwable[2];
                Thread peer = new Thread(() -> seen[1] = entered(strategy, 1, own));
                peer.start();
                seen[0] = entered(strategy, 0, null);
                peer.join();
                check(seen[1] == own, seen[1]);
                check(round == 0 ? seen[0] == null : seen[0] instanceof DistException, seen[0]);
            }
        }
    }

    private static Throwable entered(Strategy strategy, int id, IOException failure) {
        try {
            strategy.enter(id, replica -> {
                equal(id, replica.id());
                if (failure != null) {
                    throw failure;
                }
                replica.barrier();
            });
            return null;
        } catch (IOException | DistException e) {
            return e;
        }
    }
}
