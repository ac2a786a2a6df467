// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.RpcTest.refused;
import static org.libdist.RpcTest.until;
import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.floats;
import static org.libdist.Tap.thrown;
import static org.libdist.Tensors.copyOf;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/** Parameter servers, workers and a coordinator of this process, over loopback. */
final class ServersTest {
    private ServersTest() {}

    static void addTo(Tap tap) {
        if (!RpcTest.isThere()) {
            return;
        }
        tap.add("closures change variables and give values", ServersTest::closures);
        tap.add("variables on parameter servers", ServersTest::variables);
        tap.add("each worker has its own", ServersTest::perWorker);
        tap.add("a checkpoint of servers goes on from its mark", ServersTest::checkpoint);
        ServersMisuseTest.addTo(tap);
    }

    /** An object of this program's, of which each worker has one. */
    private static final class Counter {
        final AtomicInteger next = new AtomicInteger();
    }

    /** A job of this process. */
    static final class Job implements AutoCloseable {
        final List<Server> servers = new ArrayList<>(); // parameter servers, then workers
        final Strategy values = Strategy.create(1); // that makes arguments
        final Strategy strategy;
        final Coordinator coordinator;
        final AtomicInteger inside = new AtomicInteger(); // closures that wait
        final AtomicInteger ended = new AtomicInteger(); // those that nobody wanted any more
        final CountDownLatch open = new CountDownLatch(1); // lets them go
        final AtomicReference<Closure> kept = new AtomicReference<>();
        final AtomicReference<Elements> lent = new AtomicReference<>();

        Job(int numParameterServers, int numWorkers, CoordinatorOptions options) {
            for (int i = 0; i < numParameterServers + numWorkers; i++) {
                servers.add(server());
            }
            strategy = strategy(servers.subList(0, numParameterServers), servers.subList(numParameterServers, servers.size()));
            coordinator = Coordinator.create(strategy, options);
        }

        Server server() {
            Server server = Server.createLocal();
            register(server);
            server.start();
            return server;
        }

        private static List<String> addresses(List<Server> servers) {
            return servers.stream().map(server -> server.target().replace("grpc://", "")).toList();
        }

        static Strategy strategy(List<Server> ps, List<Server> workers) {
            try (ClusterSpec spec = ClusterSpec.create(Map.of("ps", addresses(ps), "worker", addresses(workers)));
                    ClusterResolver resolver = ClusterResolver.fromSpec(spec)) {
                return Strategy.create(
                        StrategyOptions.DEFAULT.kind(StrategyKind.PARAMETER_SERVER).clusterResolver(resolver));
            }
        }

        private void register(Server server) {
            server.register("add and double", (closure, arguments) -> {
                closure.assign("v", Assign.ADD, arguments);
                return of(2 * Tensors.toFloats(arguments.tensor())[0]);
            });
            server.register("itself", (closure, arguments) -> arguments);
            server.register("which", (closure, arguments) -> Value.createText(Strategy.current(),
                                            closure.name() + " " + arguments.kind() + " " + closure.isCancelled()
                                                    + " " + (closure.worker() < 2) + " " + closure.id()));
            server.register("fails", (closure, arguments) -> {
                closure.assign("v", Assign.ADD, of(1));
                throw new DistException(Status.NOT_FOUND, "no row " + arguments.text(), null);
            });
            server.register("throws", (closure, arguments) -> { throw new IOException("boom"); });
            server.register("overflows", (closure, arguments) -> deep(arguments));
            server.register("new counter", (closure, arguments) -> Value.wrapObject(Strategy.current(), new Counter()));
            server.register("count", (closure, arguments) -> {
                try (Value own = closure.perWorker("counter")) {
                    return of(((Counter) own.object()).next.incrementAndGet());
                }
            });
            server.register("wait", (closure, arguments) -> {
                inside.incrementAndGet();
                Cancel cancel = closure.cancel();
                while (!open.await(1, TimeUnit.MILLISECONDS)) {
                    if (closure.isCancelled() && cancel.isSignalled()) {
                        ended.incrementAndGet();
                        throw new DistException(Status.CANCELLED, "nobody wants it", null);
                    }
                }
                return null;
            });
            server.register("read", (closure, arguments) -> closure.read("v", arguments.text()).get(1));
            server.register("double rows", (closure, indices) -> {
                Value rows = closure.readRows("table", indices);
                closure.scatter("table", Scatter.ADD, slices(rows, indices));
                return rows;
            });
            server.register("step", (closure, gradient) -> {
                closure.update("momentum", List.of("w", "m"), gradient);
                return null;
            });
            server.register("close", (closure, arguments) -> {
                server.close();
                return null;
            });
            server.register("keep", (closure, arguments) -> {
                kept.set(closure);
                return null;
            });
            server.registerUpdate("momentum", ServersTest::momentum);
            server.registerUpdate("half done", (variables, arguments) -> {
                lent.set(variables.get(0));
                variables.get(0).set(0, 77);
                throw new IllegalStateException("half done");
            });
            server.registerUpdate("close", (variables, arguments) -> server.close());
        }

        private static Value deep(Value arguments) {
            return deep(arguments.retain());
        }

        static Value of(float x) {
            return Value.createTensor(Strategy.current(), copyOf(new float[] {x}));
        }

        Value number(float x) {
            return Value.createTensor(values, copyOf(new float[] {x}));
        }

        Value text(String text) {
            return Value.createText(values, text);
        }

        void create(String name, float... numbers) {
            coordinator.createVariable(name, copyOf(numbers));
        }

        /** What a closure comes to, as text. */
        String call(String function, Value arguments) {
            try (RemoteValue remote = coordinator.schedule(function, arguments); Value value = remote.get()) {
                return value.describe();
            }
        }

        String read(String name) {
            try (Value value = coordinator.read(name).get(0)) {
                return value.describe();
            }
        }

        void await(AtomicInteger counter, int wanted) throws InterruptedException {
            until(() -> counter.get() >= wanted);
        }

        @Override
        public void close() {
            coordinator.close();
            strategy.close();
            servers.forEach(Server::close);
            values.close();
        }
    }

    private static Value slices(Value rows, Value indices) {
        Strategy strategy = Strategy.current();
        return Value.createComposite(
                strategy, ValueKind.INDEXED_SLICES, List.of(rows, indices, Value.createNone(strategy)));
    }

    /** w -= m = m/2 + gradient. */
    private static void momentum(List<Elements> variables, Value gradient) {
        float[] w = variables.get(0).toFloats();
        float[] m = variables.get(1).toFloats();
        float[] g = Tensors.toFloats(gradient.tensor());
        for (int i = 0; i < g.length; i++) {
            m[i] = m[i] / 2 + g[i];
            w[i] -= m[i];
        }
        variables.get(0).put(w);
        variables.get(1).put(m);
    }

    private static void closures() throws Exception {
        long before = Upcalls.lastToken();
        try (Job job = new Job(2, 2, CoordinatorOptions.DEFAULT)) {
            job.create("v", 0);
            List<RemoteValue> remotes = new ArrayList<>();
            for (int i = 1; i <= 7; i++) {
                remotes.add(job.coordinator.schedule("add and double", job.number(i)));
            }
            job.coordinator.join();
            for (int i = 1; i <= 7; i++) {
                floats(remotes.get(i - 1).get().tensor(), 2 * i);
                check(remotes.get(i - 1).isDone());
                floats(remotes.get(i - 1).future().get().tensor(), 2 * i);
                remotes.get(i - 1).close();
            }
            equal("f32[1] [28]", job.read("v"));
            equal("f32[1] [3]", job.call("itself", job.number(3)));
            equal("\"which NONE false true 8\"", job.call("which", null));
            equal("f32[1] [28]", job.call("read", job.text("v")));
            check(job.coordinator.isDone());
            CoordinatorStats stats = job.coordinator.stats();
            check(stats.bytesSent() > 7 * 4 && stats.bytesReceived() > 7 * 4, stats);
            equal(new CoordinatorStats(2, 2, 2, 0, 0, 10, 10, 0, 0, 0, 10, stats.bytesSent(), stats.bytesReceived()),
                    stats);
            String trace = job.coordinator.traceJson();
            for (String words : List.of("traceEvents", "add and double", "worker 1")) {
                check(trace.contains(words), trace);
            }
            String first = job.servers.get(0).traceJson();
            check(first.contains("\"libdist ps 0\""), first);
            // The servers end with their coordinator.
            refused(Status.DEADLINE_EXCEEDED, "continues to run", () -> job.servers.get(0).join(Duration.ZERO));
            job.coordinator.close();
            job.servers.forEach(Server::join);
        }
        until(() -> {
            System.gc();
            return Upcalls.sizeSince(before) == 0;
        });
    }

    private static void variables() {
        IllegalStateException own = new IllegalStateException("no such dtype");
        CoordinatorOptions options = CoordinatorOptions.DEFAULT.partitioner((dtype, shape) -> {
            if (dtype != DType.F32) {
                throw own;
            }
            return shape.length == 3 ? new long[1] : Partitioners.fixedShards(shape, 0, 2);
        });
        try (Job job = new Job(2, 1, options)) {
            Coordinator coordinator = job.coordinator;
            job.create("v", 1);
            float[] numbers = new float[14];
            for (int i = 0; i < numbers.length; i++) {
                numbers[i] = i;
            }
            Tensor table = copyOf(numbers).reshaped(7, 2);
            coordinator.createVariable("table", table, CoordinatorVariableOptions.DEFAULT.partitions(3, 1));
            job.create("w", 0, 0, 0);
            coordinator.createVariable(
                    "m", copyOf(new float[] {0, 0, 0}), CoordinatorVariableOptions.DEFAULT.colocateWith("w"));
            equal(List.of("v", "table", "w", "m"), coordinator.variables());
            equal(new TensorSpec(DType.F32, List.of(7L, 2L)), coordinator.variableSpec("table"));
            String[] device = {"/job:ps/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:1/device:CPU:0"};
            equal(List.of(new Coordinator.Part(device[1], 0, 3), new Coordinator.Part(device[0], 3, 2),
                          new Coordinator.Part(device[1], 5, 2)),
                    coordinator.variableParts("table"));
            equal(List.of(new Coordinator.Part(device[0], 0, 2), new Coordinator.Part(device[1], 2, 1)),
                    coordinator.variableParts("w"));
            equal(coordinator.variableParts("w"), coordinator.variableParts("m"));

            // What the partitioner says, and what it throws.
            Tensor ints = copyOf(new int[] {1});
            for (int i = 0; i < 2; i++) {
                check(thrown(IllegalStateException.class, () -> coordinator.createVariable("bad", ints)) == own);
            }
            refused(Status.ALREADY_EXISTS, "\"v\"", () -> job.create("v", 1));
            refused(Status.INVALID_ARGUMENT, "1 numbers",
                    () -> coordinator.createVariable("bad", table.reshaped(7, 1, 2)));
            refused(Status.INVALID_ARGUMENT, "partitions are [0]",
                    () -> coordinator.createVariable("bad", ints, CoordinatorVariableOptions.DEFAULT.partitions(0)));

            // All of it, some rows of it, and changes of some.
            Value whole = coordinator.read("table", "v").get(0);
            floats(whole.tensor(), numbers);
            Value indices = Value.createTensor(job.values, copyOf(new int[] {6, 0, 3, 6}));
            equal("f32[4, 2] [[12, 13], [0, 1], [6, 7], [12, 13]]", job.call("double rows", indices));
            Value rows = coordinator.readRows("table", indices);
            floats(rows.tensor(), 36, 39, 0, 2, 12, 14, 36, 39);
            coordinator.scatter("table", Scatter.UPDATE, slices(rows, indices));
            coordinator.assign("table", Assign.SUB, whole);
            coordinator.assign("v", Assign.SET, job.number(9));
            equal("f32[1] [9]", job.read("v"));
            floats(coordinator.readRows("table", indices).tensor(), 24, 26, 0, 1, 6, 7, 24, 26);

            // Functions of the parameter servers'.
            Value gradient = Value.createTensor(job.values, copyOf(new float[] {1, 2, 3}));
            equal("None", job.call("step", gradient));
            coordinator.update("momentum", List.of("w", "m"), gradient);
            equal("f32[3] [-2.5, -5, -7.5]", job.read("w"));
            refused(Status.UNKNOWN, "IllegalStateException: half done",
                    () -> coordinator.update("half done", List.of("w"), null));
            refused(Status.FAILED_PRECONDITION, "is over", () -> job.lent.get().set(0, 1));
            refused(Status.FAILED_PRECONDITION, "Server.close(): this thread is in one of the server's update functions",
                    () -> coordinator.update("close", List.of("w"), null));
            refused(Status.NOT_FOUND, "no update function nowhere",
                    () -> coordinator.update("nowhere", List.of("w")));
            equal("f32[3] [-2.5, -5, -7.5]", job.read("w"));
        }
    }

    private static void perWorker() throws Exception {
        try (Job job = new Job(1, 2, CoordinatorOptions.DEFAULT)) {
            until(() -> job.coordinator.stats().workersUp() == 2);
            long before = Upcalls.lastToken();
            job.coordinator.createPerWorker("counter", "new counter");
            equal(2, Upcalls.sizeSince(before));
            refused(Status.ALREADY_EXISTS, "\"counter\"",
                    () -> job.coordinator.createPerWorker("counter", "new counter", null));
            refused(Status.UNKNOWN, "IOException: boom", () -> job.coordinator.createPerWorker("other", "throws", null));
            job.create("v", 0);
            refused(Status.FAILED_PRECONDITION, "per-worker",
                    () -> job.coordinator.createPerWorker("third", "add and double", job.number(1)));
            for (String count : List.of("f32[1] [1]", "f32[1] [2]")) { // workers take turns
                try (RemoteValue first = job.coordinator.schedule("count", null);
                        RemoteValue second = job.coordinator.schedule("count", null)) {
                    equal(count, first.get().describe());
                    equal(count, second.get().describe());
                }
            }
        }
    }

    private static void checkpoint() throws IOException {
        Path path = Files.createTempFile("dist-servers", ".safetensors");
        try {
            for (int round = 0; round < 2; round++) { // the second time on other servers
                try (Job job = new Job(2 - round, 1, CoordinatorOptions.DEFAULT)) {
                    job.create("other", 1);
                    job.create("v", 0);
                    if (round == 1) {
                        equal(3L, job.coordinator.load(path));
                        equal("f32[1] [6]", job.read("v"));
                    }
                    for (int i = 1; i <= 3; i++) {
                        job.coordinator.schedule("add and double", job.number(3 * round + i));
                    }
                    job.coordinator.join(Duration.ofSeconds(Long.MAX_VALUE));
                    refused(Status.FAILED_PRECONDITION, "before the first closure", () -> job.coordinator.load(path));
                    job.coordinator.save(path);
                    equal(round == 0 ? "f32[1] [6]" : "f32[1] [21]", job.read("v"));
                }
            }
        } finally {
            Files.delete(path);
        }
    }
}
