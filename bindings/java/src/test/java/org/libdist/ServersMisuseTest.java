// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.RpcTest.refused;
import static org.libdist.RpcTest.until;
import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;
import static org.libdist.Tensors.copyOf;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import org.libdist.ServersTest.Job;

/** Failures of closures, waits that end early, and what becomes of what a program forgets or closes too early. */
final class ServersMisuseTest {
    private static final Duration SOON = Duration.ofMillis(20);

    private ServersMisuseTest() {}

    static void addTo(Tap tap) {
        tap.add("errors of closures come out once", ServersMisuseTest::failures);
        tap.add("waits for closures end early", ServersMisuseTest::waits);
        tap.add("an error ends other closures", ServersMisuseTest::othersEnd);
        tap.add("the end of a coordinator and of servers", ServersMisuseTest::ends);
        tap.add("forgotten closures, coordinators and servers end", ServersMisuseTest::forgotten);
        tap.add("misuse of servers and coordinators", ServersMisuseTest::misuse);
    }

    private static FutureTask<Void> begin(Tap.Test test) {
        FutureTask<Void> task = new FutureTask<>(() -> {
            test.run();
            return null;
        });
        new Thread(task).start();
        return task;
    }

    /** What the task threw, itself. */
    private static void result(FutureTask<?> task) throws Exception {
        try {
            task.get();
        } catch (ExecutionException e) {
            throw(Exception) e.getCause();
        }
    }

    private static void failures() {
        try (Job job = new Job(1, 1, CoordinatorOptions.DEFAULT)) {
            job.create("v", 0);
            Map<String, List<?>> expected = new LinkedHashMap<>();
            expected.put("fails", List.of(Status.NOT_FOUND, "no row 7"));
            expected.put("throws", List.of(Status.UNKNOWN, "java.io.IOException: boom"));
            expected.put("overflows", List.of(Status.UNKNOWN, "StackOverflowError"));
            expected.put("nowhere", List.of(Status.NOT_FOUND, "has no closure nowhere"));
            expected.put("count", List.of(Status.NOT_FOUND, "no per-worker value \"counter\""));
            expected.put("new counter", List.of(Status.INVALID_ARGUMENT, "cannot be sent"));
            expected.put("close",
                    List.of(Status.FAILED_PRECONDITION, "Server.close(): this thread is in one of the server's closures"));
            expected.forEach((name, how) -> {
                Status status = (Status) how.get(0);
                String words = (String) how.get(1);
                try (RemoteValue remote = job.coordinator.schedule(name, job.text("7"))) {
                    refused(status, words, remote::get);
                    refused(status, words, remote::get);
                    refused(status, words, job.coordinator::join);
                    job.coordinator.join();
                    refused(status, words, remote::get);
                }
            });
            job.coordinator.schedule("throws").close(); // the closure goes on
            refused(Status.UNKNOWN, "closure 7 (throws) on worker 0", () -> {
                while (!job.coordinator.isDone()) {
                    Thread.sleep(1);
                }
            });
            check(job.coordinator.isDone());
            // What has failed has changed nothing.
            equal("f32[1] [0]", job.read("v"));
            equal("f32[1] [6]", job.call("add and double", job.number(3)));
            equal("f32[1] [3]", job.read("v"));
        }
    }

    private static void waits() throws Exception {
        try (Job job = new Job(1, 1, CoordinatorOptions.DEFAULT.maxQueued(2))) {
            job.create("v", 0);
            RemoteValue running = job.coordinator.schedule("wait");
            job.await(job.inside, 1);
            RemoteValue queued = job.coordinator.schedule("which", null);
            Server server = job.servers.get(0);
            AtomicInteger still = new AtomicInteger();
            List<Tap.Test> all = List.of(() -> job.coordinator.schedule("which", null), job.coordinator::join,
                    server::join, queued::get);
            for (Tap.Test wait : all) {
                FutureTask<Void> task = new FutureTask<>(() -> {
                    try {
                        wait.run();
                    } finally {
                        still.addAndGet(Thread.currentThread().isInterrupted() ? 1 : 0);
                    }
                    return null;
                });
                Thread thread = new Thread(task);
                thread.start();
                Thread.sleep(2); // either before the wait or in it
                thread.interrupt();
                DistException e = thrown(DistException.class, () -> result(task));
                equal(Status.CANCELLED, e.status());
                check(e.getCause() instanceof InterruptedException, e);
            }
            equal(all.size(), still.get());
            Duration noLimit = Duration.ofNanos(-1);
            ScheduleOptions soon = ScheduleOptions.DEFAULT.timeout(SOON);
            refused(Status.DEADLINE_EXCEEDED, "place in the queue", () -> job.coordinator.schedule("which", null, soon));
            refused(Status.DEADLINE_EXCEEDED, "waiting for closures", () -> job.coordinator.join(SOON));
            refused(Status.DEADLINE_EXCEEDED, "continues to run", () -> server.join(SOON));
            try (Cancel cancel = Cancel.create()) {
                ScheduleOptions options = ScheduleOptions.DEFAULT.timeout(noLimit).cancel(cancel);
                List<Tap.Test> cancelled = List.of(() -> job.coordinator.schedule("which", null, options),
                        () -> job.coordinator.join(noLimit, cancel), () -> server.join(noLimit, cancel));
                List<FutureTask<Void>> tasks = cancelled.stream().map(ServersMisuseTest::begin).toList();
                Thread.sleep(2);
                cancel.signal("enough");
                for (FutureTask<Void> task : tasks) {
                    refused(Status.CANCELLED, "enough", () -> result(task));
                }
                cancelled.forEach(wait -> refused(Status.CANCELLED, "enough", wait));
            }
            // One that waits can be taken back; one that runs goes on.
            queued.future().cancel(true);
            refused(Status.CANCELLED, "", queued::get);
            check(!running.isDone());
            job.open.countDown();
            equal(ValueKind.NONE, running.get().kind());
            job.coordinator.join();
            equal(0, job.ended.get());
        }
    }

    private static void othersEnd() throws Exception {
        try (Job job = new Job(1, 2, CoordinatorOptions.DEFAULT)) {
            job.create("v", 0);
            RemoteValue running = job.coordinator.schedule("wait");
            job.await(job.inside, 1);
            refused(Status.UNKNOWN, "boom", () -> job.call("throws", null));
            job.await(job.ended, 1);
            refused(Status.UNKNOWN, "boom", job.coordinator::join);
            refused(Status.CANCELLED, "another closure has failed", running::get);
            equal("f32[1] [2]", job.call("add and double", job.number(1)));
        }
    }

    private static void ends() throws Exception {
        try (Job job = new Job(1, 2, CoordinatorOptions.DEFAULT.maxQueued(3))) {
            job.create("v", 0);
            List<RemoteValue> remotes = new ArrayList<>();
            for (String name : List.of("wait", "wait", "which")) {
                remotes.add(job.coordinator.schedule(name, null));
            }
            job.await(job.inside, 2);
            List<FutureTask<Void>> waits = List.of(begin(job.coordinator::join),
                    begin(() -> job.coordinator.schedule("which", null)), begin(() -> remotes.get(2).get()));
            Thread.sleep(20); // they are in it, or nearly
            Coordinator.create(job.strategy).close(); // the first one goes on
            refused(Status.FAILED_PRECONDITION, "coordinator", job.strategy::close);
            job.coordinator.close();
            job.coordinator.close();
            for (FutureTask<Void> wait : waits) {
                Status status = thrown(DistException.class, () -> result(wait)).status();
                check(status == Status.CANCELLED || status == Status.FAILED_PRECONDITION, status);
            }
            refused(Status.CANCELLED, "the coordinator has ended", () -> remotes.get(0).get());
            job.await(job.ended, 2);
            refused(Status.FAILED_PRECONDITION, "the coordinator is closed", job.coordinator::join);
            // Another one takes the strategy; servers that have ended do not come back to it.
            try (Coordinator third =
                            Coordinator.create(job.strategy, CoordinatorOptions.DEFAULT.timeout(SOON.multipliedBy(3)))) {
                refused(Status.DEADLINE_EXCEEDED, "/job:ps/task:0 is not connected",
                        () -> third.createVariable("v", copyOf(new float[1])));
            }
            // A server's end lets go of who waits for it.
            Server lone = job.server();
            FutureTask<Void> stopped = begin(lone::join);
            Thread.sleep(2);
            lone.stop();
            stopped.get();
            Server other = job.server();
            FutureTask<Void> closed = begin(other::join);
            Thread.sleep(20);
            other.close();
            other.close();
            closed.get();
            lone.close();
        }
    }

    private static void forgotten() throws Exception {
        System.gc();
        long before = Upcalls.lastToken();
        forgetServer();
        collected(before);
        try (Job job = new Job(1, 2, CoordinatorOptions.DEFAULT)) {
            job.create("v", 0);
            job.coordinator.createPerWorker("counter", "new counter");
            for (int i = 0; i < 50; i++) { // remote values, arguments and closures are forgotten, and the collector comes
                job.coordinator.schedule("add and double", job.number(1));
                job.coordinator.schedule("count", null);
                System.gc();
            }
            job.coordinator.join();
            equal("f32[1] [50]", job.read("v"));

            // A coordinator is there while its remote values are; then its servers end.
            try (Server ps = job.server(); Server worker = job.server()) {
                long offered = Upcalls.lastToken();
                RemoteValue remote = forgetCoordinator(ps, worker);
                job.await(job.inside, 1);
                for (int i = 0; i < 5; i++) {
                    System.gc();
                    Thread.sleep(10);
                }
                check(!remote.isDone());
                refused(Status.DEADLINE_EXCEEDED, "continues to run", () -> ps.join(Duration.ZERO));
                job.open.countDown();
                equal(ValueKind.NONE, remote.get().kind());
                remote = null;
                FutureTask<Void> end = begin(ps::join);
                until(() -> {
                    System.gc();
                    return end.isDone();
                });
                end.get();
                collected(offered);
            }
        }
        collected(before);
    }

    private static void collected(long since) throws InterruptedException {
        until(() -> {
            System.gc();
            return Upcalls.sizeSince(since) == 0;
        });
    }

    private static void forgetServer() {
        Server unused = Server.createLocal();
        unused.register("a", (closure, arguments) -> null);
        unused.registerUpdate("a", (variables, arguments) -> {});
        refused(Status.ALREADY_EXISTS, "a", () -> unused.register("a", (closure, arguments) -> null));
    }

    private static RemoteValue forgetCoordinator(Server ps, Server worker) {
        Strategy strategy = Job.strategy(List.of(ps), List.of(worker));
        Coordinator coordinator = Coordinator.create(strategy,
                CoordinatorOptions.DEFAULT.partitioner((dtype, shape) -> Partitioners.fixedShards(shape, 0, 1)));
        coordinator.createVariable("v", copyOf(new float[1]));
        return coordinator.schedule("wait");
    }

    private static void misuse() {
        try (Job job = new Job(1, 1, CoordinatorOptions.DEFAULT)) {
            Coordinator coordinator = job.coordinator;
            Server server = job.servers.get(0);
            job.create("v", 0);
            Value one = job.number(1);
            equal("None", job.call("keep", null));
            Closure kept = job.kept.get();
            equal("keep 0 0", kept.name() + " " + kept.id() + " " + kept.worker());
            for (Tap.Test call : List.<Tap.Test>of(() -> kept.read("v"), () -> kept.readRows("v", one),
                         () -> kept.assign("v", Assign.SET, one), () -> kept.scatter("v", Scatter.ADD, one),
                         () -> kept.update("momentum", List.of("v"), null), () -> kept.perWorker("x"), kept::cancel)) {
                refused(Status.FAILED_PRECONDITION, "the closure is over", call);
            }
            Value gone = job.text("gone");
            gone.close();
            refused(Status.FAILED_PRECONDITION, "the value is closed", () -> coordinator.schedule("itself", gone));
            refused(Status.INVALID_ARGUMENT, "cannot be sent",
                    () -> coordinator.schedule("itself", Value.wrapObject(job.values, "x")));
            refused(Status.NOT_FOUND, "\"x\"", () -> coordinator.read("x"));
            refused(Status.NOT_FOUND, "\"x\"", () -> coordinator.variableParts("x"));
            refused(Status.INVALID_ARGUMENT, "maxStaleness is -1",
                    () -> coordinator.createVariable("x", copyOf(new float[1]), CoordinatorVariableOptions.DEFAULT.maxStaleness(-1)));
            refused(Status.INVALID_ARGUMENT, "cannot be assigned",
                    () -> coordinator.assign("v", Assign.SET, Value.createTensor(job.values, copyOf(new float[2]))));
            refused(Status.UNIMPLEMENTED, "",
                    () -> coordinator.scatter("v", Scatter.BATCH_UPDATE, Value.createNone(job.values)));
            thrown(IllegalArgumentException.class, () -> coordinator.schedule("a\0b", null));
            thrown(IllegalArgumentException.class, () -> coordinator.read("v", "a\0b"));
            refused(Status.FAILED_PRECONDITION, "strategy still has a coordinator; close it first", job.strategy::close);
            refused(Status.INVALID_ARGUMENT, "StrategyKind.PARAMETER_SERVER", () -> Coordinator.create(job.values));
            refused(Status.FAILED_PRECONDITION, "started", () -> server.register("late", (closure, arguments) -> null));
            refused(Status.FAILED_PRECONDITION, "already been started", server::start);
            refused(Status.INVALID_ARGUMENT, "numThreads is -1", () -> Server.createLocal(ServerOptions.DEFAULT.numThreads(-1)));
            refused(Status.INVALID_ARGUMENT, "maxMessageBytes is -1",
                    () -> Server.createLocal(ServerOptions.DEFAULT.maxMessageBytes(-1)));
            refused(Status.INVALID_ARGUMENT, "bindAddress is \"nowhere\"",
                    () -> Server.createLocal(ServerOptions.DEFAULT.bindAddress("nowhere")));
            refused(Status.INVALID_ARGUMENT, "", () -> Server.create(ClusterSpec.create(Map.of("ps", List.of("a:1"))), "worker", 0));
            try (Strategy strategy = Job.strategy(List.of(server), List.of(job.servers.get(1)))) {
                refused(Status.INVALID_ARGUMENT, "closuresPerWorker is -1",
                        () -> Coordinator.create(strategy, CoordinatorOptions.DEFAULT.closuresPerWorker(-1)));
            }
            Server fresh = Server.createLocal();
            refused(Status.FAILED_PRECONDITION, "has not been started", fresh::join);
            fresh.close();
            fresh.close();
            for (Tap.Test call : List.<Tap.Test>of(fresh::start, fresh::target, fresh::join, fresh::stop)) {
                refused(Status.FAILED_PRECONDITION, "the server is closed", call);
            }
            try (Server named = Server.create(ClusterSpec.create(Map.of("ps", List.of("127.0.0.1:0"))), "ps", OptionalInt.of(0),
                         ServerOptions.DEFAULT.startTimeout(Duration.ofMillis(1)))) {
                named.start();
                refused(Status.DEADLINE_EXCEEDED, "no coordinator connected", named::join);
            }
        }
    }
}
