// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.FutureTask;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Cluster specs, resolvers and partitioners. */
final class ClusterTest {
    private static final String JSON = "{\"worker\":[\"a:1\",\"b:2\"],\"ps\":{\"3\":\"c:4\"}}";
    private static final OptionalInt NO_TASK = OptionalInt.empty();
    private static final ClusterResolverOptions NONE = ClusterResolverOptions.DEFAULT;

    private ClusterTest() {}

    static void addTo(Tap tap) {
        tap.add("cluster specs say which processes there are", ClusterTest::specs);
        tap.add("the rules of a cluster", ClusterTest::rules);
        tap.add("cluster specs that cannot be", ClusterTest::badSpecs);
        tap.add("a resolver of a given spec", ClusterTest::simple);
        tap.add("resolvers of TF_CONFIG, Slurm, Kubernetes and unions", ClusterTest::found);
        tap.add("a resolver of one's own", ClusterTest::own);
        tap.add("what a resolver's functions throw", ClusterTest::ownThrows);
        tap.add("several threads ask a resolver", ClusterTest::severalAsk);
        tap.add("a strategy's resolver", ClusterTest::ofStrategy);
        tap.add("a resolver's functions end with it", ClusterTest::ends);
        tap.add("partitioners", ClusterTest::partitioners);
    }

    private static ClusterSpec twoJobs() {
        return ClusterSpec.create(List.of(new ClusterJob("worker", List.of("a:1", "b:2")),
                new ClusterJob("ps", List.of("c:4"), List.of(3))));
    }

    private static OptionalInt task(int id) {
        return OptionalInt.of(id);
    }

    private static void refused(Tap.Test test) {
        equal(Status.INVALID_ARGUMENT, thrown(DistException.class, test).status());
    }

    private static void closed(Tap.Test test) {
        equal(Status.FAILED_PRECONDITION, thrown(DistException.class, test).status());
    }

    private static void specs() {
        ClusterSpec given = twoJobs();
        ClusterSpec again = ClusterSpec.fromJson(given.toJson());
        for (ClusterSpec spec : List.of(given, again)) {
            equal(List.of("worker", "ps"), spec.jobs());
            equal(2, spec.numTasks("worker"));
            equal("[0, 1]", Arrays.toString(spec.taskIndices("worker")));
            equal("[3]", Arrays.toString(spec.taskIndices("ps")));
            equal("c:4", spec.taskAddress("ps", 3));
            equal(JSON, spec.toString());
        }
        Map<String, List<String>> jobs = new LinkedHashMap<>();
        jobs.put("worker", List.of("x:1"));
        jobs.put("", List.of());
        ClusterSpec other = ClusterSpec.create(jobs);
        equal(0, other.numTasks(""));
        check(given.isSame(again) && !given.isSame(other), given, again, other);
        equal("{\"worker\":[\"x:1\",\"y:1\"],\"\":{}}",
                ClusterSpec.fromSpecs(List.of(other, ClusterSpec.create(Map.of("worker", List.of("y:1"))))).toJson());
        equal("{}", ClusterSpec.create(Map.of()).toJson());
        again.close();
        again.close();
        closed(again::jobs);
        closed(() -> given.isSame(again));
        closed(() -> ClusterSpec.fromSpecs(List.of(again)));
        equal("a closed cluster spec", again.toString());
    }

    private static void rules() {
        ClusterSpec spec = ClusterSpec.create(Map.of(
                "chief", List.of("a:1"), "worker", List.of("b:1", "c:1"), "ps", List.of("d:1")));
        spec.validate("worker", task(1));
        check(spec.isChief("chief", task(0)) && !spec.isChief("worker", task(0)), spec);
        equal("/job:chief/replica:0/task:0", spec.collectiveLeader("worker", task(1)));
        equal("/job:ps/replica:0/task:0", spec.coordinationLeader());
        equal(3, spec.numWorkers("worker"));
        equal(2, spec.idInCluster("worker", task(1)));
        check(spec.shouldSaveCheckpoint("chief", task(0)) && !spec.shouldSaveSummary("worker", task(1)), spec);
        check(spec.shouldEvaluate("chief", task(0)), spec);
        check(ClusterSpec.create(Map.of()).shouldSaveCheckpoint(null, NO_TASK));
        refused(() -> spec.validate("gopher", task(0)));
        refused(() -> spec.validate("worker", task(2)));
        refused(() -> spec.validate("worker", NO_TASK));
        refused(() -> spec.numWorkers(null));
        thrown(IllegalArgumentException.class, () -> spec.validate("worker\0", task(0)));
        thrown(NullPointerException.class, () -> spec.validate("worker", null));
    }

    private static ClusterSpec one(String name, String address) {
        return ClusterSpec.create(List.of(new ClusterJob(name, List.of(address))));
    }

    private static void badSpecs() {
        refused(() -> one("worker", "a\nb"));
        refused(() -> one("x".repeat(128), "a:1"));
        refused(() -> one("worker", "a".repeat(512)));
        refused(()
                        -> ClusterSpec.create(IntStream.range(0, 65)
                                                  .mapToObj(i -> new ClusterJob("job" + i, List.of()))
                                                  .toList()));
        refused(()
                        -> ClusterSpec.create(List.of(new ClusterJob(
                                "worker", Stream.generate(() -> "a:1").limit(65537).toList()))));
        refused(()
                        -> ClusterSpec.create(List.of(
                                new ClusterJob("worker", List.of("a:1"), List.of(Integer.MIN_VALUE)))));
        thrown(IllegalArgumentException.class, () -> one("worker", "a\0:1"));
        thrown(IllegalArgumentException.class, () -> one("wor\0ker", "a:1"));
        thrown(IllegalArgumentException.class, () -> new ClusterJob("w", List.of("a:1"), List.of(0, 1)));
        thrown(NullPointerException.class, () -> ClusterSpec.create(Arrays.asList((ClusterJob) null)));
        thrown(NullPointerException.class, () -> new ClusterJob("w", Arrays.asList((String) null)));
        for (String text : List.of("", "{", "[]", "{\"worker\": \"a:1\"}", "{\"worker\": [5]}",
                     " ".repeat(1 << 20) + "{}", "[".repeat(1 << 19))) {
            refused(() -> ClusterSpec.fromJson(text));
        }
        thrown(IllegalArgumentException.class, () -> ClusterSpec.fromJson("{}\0"));
        ClusterSpec spec = twoJobs();
        check(thrown(DistException.class, () -> spec.taskIndices("nobody")).getMessage().contains("nobody"));
        refused(() -> spec.taskAddress("worker", 2));
        check(thrown(DistException.class, () -> ClusterSpec.fromSpecs(List.of()))
                        .getMessage()
                        .contains("ClusterSpec.fromSpecs"));
        thrown(NullPointerException.class, () -> ClusterSpec.fromSpecs(Arrays.asList(spec, null)));
    }

    private static void simple() {
        ClusterResolver resolver = ClusterResolver.fromSpec(twoJobs(),
                NONE.taskType("worker").taskId(1).numAccelerators(2).rpcLayer("grpc").sessionAddress("s:9"));
        equal(JSON, resolver.spec().toJson());
        equal(Optional.of("worker"), resolver.taskType());
        equal(task(1), resolver.taskId());
        equal(Optional.of("grpc"), resolver.rpcLayer());
        equal(Optional.of(""), resolver.environment());
        equal(2, resolver.numAccelerators());
        equal("", resolver.gpuIds());
        equal("grpc://s:9", resolver.master());
        equal("a:1", resolver.master("worker", task(0), ""));
        check(resolver.explain().contains("worker"), resolver.explain());
        refused(() -> resolver.master("worker", task(5), null));
        thrown(IllegalArgumentException.class, () -> resolver.master("worker", task(0), "g\0"));
        ClusterResolver unknown = ClusterResolver.fromSpec(twoJobs());
        equal(Optional.empty(), unknown.taskType());
        equal(NO_TASK, unknown.taskId());
        equal(Optional.empty(), unknown.rpcLayer());
        refused(() -> ClusterResolver.fromSpec(twoJobs(), NONE.numAccelerators(-1)));
        refused(() -> ClusterResolver.fromSpec(twoJobs(), NONE.environment("a\nb")));
        refused(() -> ClusterResolver.fromSpec(twoJobs(), NONE.rpcLayer("x".repeat(1 << 20))));
        for (Function<String, ClusterResolverOptions> option :
                List.<Function<String, ClusterResolverOptions>>of(NONE::taskType, NONE::rpcLayer,
                        NONE::environment, NONE::sessionAddress, NONE::tfConfig)) {
            thrown(IllegalArgumentException.class, () -> option.apply("{}\0"));
        }
        unknown.close();
        unknown.close();
        closed(unknown::spec);
        closed(() -> ClusterResolver.fromResolvers(List.of(unknown)));
        closed(() -> Strategy.create(StrategyOptions.DEFAULT.numReplicas(1).clusterResolver(unknown)).close());
    }

    private static void found() {
        ClusterResolver config = ClusterResolver.fromTfConfig(NONE.tfConfig(
                "{\"cluster\": {\"worker\": [\"a:1\", \"b:2\"]}, \"task\": {\"type\": \"worker\", \"index\": \"1\"}}"));
        equal(task(1), config.taskId());
        equal("b:2", config.master());
        equal(Optional.empty(), config.environment());
        refused(ClusterResolver.fromTfConfig(NONE.tfConfig("{"))::spec);

        ClusterResolver slurm =
                ClusterResolver.fromSlurm(SlurmOptions.DEFAULT.rank(3).numTasks(4).hostList("n[1-2]").tasksPerNode("2(x2)").gpusPerHost(2), NONE);
        equal("{\"worker\":[\"n1:8888\",\"n1:8889\",\"n2:8888\",\"n2:8889\"]}", slurm.spec().toJson());
        equal(task(3), slurm.taskId());
        equal("1", slurm.gpuIds());
        Map<String, Integer> jobs = new LinkedHashMap<>(Map.of("chief", 1));
        jobs.put("worker", 1);
        SlurmOptions step = SlurmOptions.DEFAULT.rank(1).hostList("n1,n2").tasksOnEachHost(1).portBase(7);
        equal("{\"chief\":[\"n1:7\"],\"worker\":[\"n2:7\"]}",
                ClusterResolver.fromSlurm(step.jobs(jobs), NONE).spec().toJson());
        refused(() -> ClusterResolver.fromSlurm(step.jobs(Map.of("worker", -1)), NONE));
        refused(() -> ClusterResolver.fromSlurm(step.hostList("n["), NONE));
        refused(() -> ClusterResolver.fromSlurm(step.portBase(65536), NONE));
        thrown(IllegalArgumentException.class, () -> ClusterResolver.fromSlurm(step.hostList("n\0"), NONE));
        thrown(IllegalArgumentException.class,
                () -> ClusterResolver.fromSlurm(step.jobs(Map.of("w\0", 2)), NONE));
        equal(List.of("n01", "n02", "n03", "n7", "m1"), ClusterResolver.slurmHosts("n[01-03,7],m1"));
        equal("[2, 2, 2, 1]", Arrays.toString(ClusterResolver.slurmTasksPerNode("2(x3),1")));
        refused(() -> ClusterResolver.slurmHosts("n[1-99999999]"));
        refused(() -> ClusterResolver.slurmTasksPerNode("1(x99999999)"));

        KubernetesOptions pods = KubernetesOptions.DEFAULT.hostName("t-1").numWorkers(2);
        ClusterResolver kubernetes =
                ClusterResolver.fromKubernetes(pods.service("s").namespace("ns").domain("d").port(5), NONE);
        equal("{\"worker\":[\"t-0.s.ns.svc.d:5\",\"t-1.s.ns.svc.d:5\"]}", kubernetes.spec().toJson());
        equal("grpc://t-1.s.ns.svc.d:5", kubernetes.master());
        equal(task(1), ClusterResolver.fromKubernetes(pods.firstIndex(1).index(2), NONE).taskId());
        refused(() -> ClusterResolver.fromKubernetes(pods.hostName("t"), NONE));
        refused(() -> ClusterResolver.fromKubernetes(pods.domain("d"), NONE));
        thrown(IllegalArgumentException.class,
                () -> ClusterResolver.fromKubernetes(pods.hostName("t-0\0"), NONE));

        RendezvousOptions alone = RendezvousOptions.DEFAULT.rank(0).size(1);
        equal(task(0), ClusterResolver.fromRendezvous(alone, NONE).taskId());
        refused(() -> ClusterResolver.fromRendezvous(alone.rank(1), NONE));
        refused(() -> ClusterResolver.fromRendezvous(alone.size(2).address("nonsense"), NONE));
        refused(() -> ClusterResolver.fromRendezvous(alone.jobName("two\nlines"), NONE));
        thrown(IllegalArgumentException.class, () -> ClusterResolver.fromRendezvous(alone.jobName("a\0"), NONE));

        ClusterResolver union = ClusterResolver.fromResolvers(List.of(slurm, kubernetes));
        slurm.close();
        kubernetes.close();
        equal(6, union.spec().numTasks("worker"));
        equal(task(3), union.taskId());
        equal(task(1), ClusterResolver.fromResolvers(List.of(union), NONE.taskId(1)).taskId());
        refused(() -> ClusterResolver.fromResolvers(List.of()));
        thrown(NullPointerException.class, () -> ClusterResolver.fromResolvers(Arrays.asList(union, null)));
    }

    /** All is answered. */
    private static class Own implements ResolverFunctions {
        @Override
        public ClusterSpec spec() throws Exception {
            return twoJobs();
        }

        @Override
        public Optional<String> taskType() {
            return Optional.of("worker");
        }

        @Override
        public OptionalInt taskId() {
            return task(1);
        }

        @Override
        public Optional<String> rpcLayer() {
            return Optional.of("own");
        }

        @Override
        public String master(String taskType, OptionalInt taskId, String rpcLayer) {
            return taskType + "/" + taskId + "/" + rpcLayer;
        }

        @Override
        public int numAccelerators(String taskType, OptionalInt taskId) {
            return 7;
        }
    }

    private static void own() {
        ClusterResolver resolver = ClusterResolver.fromFunctions(new Own());
        for (ClusterResolver each : List.of(resolver, ClusterResolver.fromResolvers(List.of(resolver)))) {
            equal(JSON, each.spec().toJson());
            equal(Optional.of("worker"), each.taskType());
            equal(task(1), each.taskId());
            equal(7, each.numAccelerators("ps", task(3)));
        }
        equal(Optional.of("own"), resolver.rpcLayer());
        equal(Optional.empty(), resolver.environment());
        equal("ps/OptionalInt[3]/x", resolver.master("ps", task(3), "x"));
        equal("ps/OptionalInt[3]/", resolver.master("ps", task(3), ""));
        equal(Optional.of("chief"), ClusterResolver.fromFunctions(new Own(), NONE.taskType("chief")).taskType());
        ClusterResolver only = ClusterResolver.fromFunctions(ClusterTest::twoJobs);
        equal(NO_TASK, only.taskId());
        equal("b:2", only.master("worker", task(1), null));
        equal(0, only.numAccelerators());
    }

    private static void ownThrows() {
        IOException mine = new IOException("mine");
        ClusterSpec gone = twoJobs();
        gone.close();
        List<Object> specs = new ArrayList<>(Arrays.asList(mine, null, gone));
        ResolverFunctions functions = new Own() {
            @Override
            public ClusterSpec spec() throws Exception {
                Object spec = specs.get(0);
                if (spec instanceof Exception) {
                    throw (Exception) spec;
                }
                return (ClusterSpec) spec;
            }

            @Override
            public Optional<String> taskType() {
                return Optional.of("x".repeat(512));
            }

            @Override
            public OptionalInt taskId() {
                throw new StackOverflowError("deep");
            }

            @Override
            public Optional<String> rpcLayer() {
                return Optional.of("a\0b");
            }

            @Override
            public Optional<String> environment() {
                return null;
            }

            @Override
            public int numAccelerators(String taskType, OptionalInt taskId) {
                throw new DistException(Status.UNAVAILABLE, "not yet");
            }
        };
        ClusterResolver resolver = ClusterResolver.fromResolvers(List.of(ClusterResolver.fromFunctions(functions)));
        check(thrown(IOException.class, resolver::spec) == mine);
        specs.remove(0);
        thrown(NullPointerException.class, resolver::spec);
        specs.remove(0);
        closed(resolver::spec);
        refused(resolver::taskType);
        thrown(StackOverflowError.class, resolver::taskId);
        thrown(IllegalArgumentException.class, resolver::rpcLayer);
        thrown(NullPointerException.class, resolver::environment);
        equal(Status.UNAVAILABLE, thrown(DistException.class, resolver::numAccelerators).status());
        check(resolver.explain().contains("not yet"), resolver.explain());
    }

    private static void severalAsk() throws Exception {
        ClusterResolver resolver = ClusterResolver.fromFunctions(new Own() {
            @Override
            public OptionalInt taskId() {
                throw new IllegalStateException(Thread.currentThread().getName());
            }
        });
        List<FutureTask<Void>> tasks = new ArrayList<>();
        for (String name : List.of("a", "b", "c")) {
            FutureTask<Void> asks = new FutureTask<>(() -> {
                for (int i = 0; i < 50; i++) {
                    equal(name, thrown(IllegalStateException.class, resolver::taskId).getMessage());
                }
            }, null);
            tasks.add(asks);
            new Thread(asks, name).start();
        }
        for (FutureTask<Void> asks : tasks) {
            asks.get();
        }
    }

    private static void ofStrategy() {
        ClusterResolver resolver = ClusterResolver.fromFunctions(new Own());
        Strategy strategy = Strategy.create(StrategyOptions.DEFAULT.numReplicas(2).clusterResolver(resolver));
        resolver.close();
        ClusterResolver borrowed = strategy.clusterResolver().orElseThrow();
        equal(task(1), borrowed.taskId());
        ClusterResolver union = ClusterResolver.fromResolvers(List.of(borrowed));
        borrowed.close(); // the strategy's
        equal(task(1), borrowed.taskId());
        strategy.close();
        closed(borrowed::taskId);
        equal(task(1), union.taskId());
    }

    private static void ends() {
        long before = Upcalls.lastToken();
        ClusterResolver resolver = ClusterResolver.fromFunctions(new Own());
        Strategy strategy = Strategy.create(StrategyOptions.DEFAULT.numReplicas(1).clusterResolver(resolver));
        resolver.close();
        check(Upcalls.sizeSince(before) > 0, before);
        strategy.close();
        equal(0, Upcalls.sizeSince(before));
        refused(() -> ClusterResolver.fromFunctions(new Own(), NONE.numAccelerators(-1)));
        equal(0, Upcalls.sizeSince(before));
    }

    private static void partitioners() {
        equal("[3, 1]", Arrays.toString(Partitioners.fixedShards(new long[] {10, 2}, 0, 3)));
        equal("[1, 3]", Arrays.toString(Partitioners.fixedShards(new long[] {2, 10}, -1, 3)));
        equal("[3, 1]", Arrays.toString(Partitioners.minSize(new long[] {6, 1}, 0, 4, 8, 10)));
        equal("[1, 1]",
                Arrays.toString(Partitioners.minSize(new long[] {10, 3}, 0, Partitioners.BYTES_PER_TEXT,
                        Partitioners.MIN_SHARD_BYTES, Partitioners.MAX_SHARDS)));
        equal("[6, 1]", Arrays.toString(Partitioners.maxSize(new long[] {6, 1}, 0, 1, 1, 0)));
        equal("[4, 1]", Arrays.toString(Partitioners.maxSize(new long[] {6, 1}, 0, 1, 1, 4)));
        equal(new Partitioners.Rows(4, 3), Partitioners.rowsOfPart(10, 3, 1));
        equal(new Partitioners.RowPlace(2, 2), Partitioners.partOfRow(10, 3, 9));
        refused(() -> Partitioners.fixedShards(new long[0], 0, 3));
        refused(() -> Partitioners.fixedShards(new long[] {3}, 1, 3));
        refused(() -> Partitioners.fixedShards(new long[17], 0, 3));
        refused(() -> Partitioners.fixedShards(new long[1 << 20], 0, 3));
        refused(() -> Partitioners.minSize(new long[] {3}, 0, 0, 1, 1));
        refused(() -> Partitioners.minSize(new long[] {1L << 62, 1L << 62}, 0, 4, 1, 1));
        refused(() -> Partitioners.maxSize(new long[] {0, 4}, 0, 4, 4, 0));
        refused(() -> Partitioners.rowsOfPart(10, 3, 3));
        refused(() -> Partitioners.partOfRow(10, 3, 10));
        thrown(NullPointerException.class, () -> Partitioners.fixedShards(null, 0, 3));
    }
}
