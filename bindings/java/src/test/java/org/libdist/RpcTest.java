// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.floats;
import static org.libdist.Tap.thrown;
import static org.libdist.Tensors.copyOf;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;

/** Methods of other processes, here of this one. */
final class RpcTest {
    private static final Duration SOON = Duration.ofMillis(30);

    private RpcTest() {}

    static void addTo(Tap tap) {
        if (!isThere()) {
            return;
        }
        tap.add("remote methods answer", () -> with(RpcTest::calls));
        tap.add("a remote method's failure has its words", () -> with(RpcTest::failures));
        tap.add("a cancel object ends a remote call", () -> with(RpcTest::cancelled));
        tap.add("an interrupt ends a remote call", () -> with(RpcTest::interrupted));
        tap.add("remote calls have deadlines", () -> with(RpcTest::deadlines));
        tap.add("a thousand remote calls at a time", () -> with(RpcTest::many));
        tap.add("remote values as futures", () -> with(RpcTest::futures));
        tap.add("a server ends its calls", () -> with(RpcTest::serverEnds));
        tap.add("a client ends its calls", () -> with(RpcTest::clientEnds));
        tap.add("a method's run ends with its call", () -> with(RpcTest::runEnds));
        RpcMisuseTest.addTo(tap);
    }

    /** Whether libdist-grpc.so is. */
    static boolean isThere() {
        return Dist.hasFeature("grpc");
    }

    static void refused(Status status, String words, Tap.Test call) {
        DistException refusal = thrown(DistException.class, call);
        equal(status, refusal.status());
        check(refusal.getMessage().contains(words), refusal.getMessage());
    }

    /** What the task threw, itself. */
    private static void result(FutureTask<?> task) throws Exception {
        try {
            task.get();
        } catch (ExecutionException e) {
            throw(Exception) e.getCause();
        }
    }

    static void until(BooleanSupplier so) throws InterruptedException {
        for (int i = 0; !so.getAsBoolean(); i++) {
            check(i < 60_000);
            Thread.sleep(1);
        }
    }

    interface Program {
        void with(Pair pair) throws Exception;
    }

    static void with(Program program) throws Exception {
        try (Strategy values = Strategy.create(1); Pair pair = new Pair(values)) {
            program.with(pair);
        }
    }

    /** A server with some methods, and a client. */
    static final class Pair implements AutoCloseable {
        final Strategy values; // that makes arguments
        final RpcServer server = RpcServer.create("127.0.0.1:0", RpcServerOptions.DEFAULT.numThreads(2).maxQueued(1024));
        final RpcClient client;
        final AtomicInteger inside = new AtomicInteger(); // calls of "wait"
        final AtomicInteger ended = new AtomicInteger(); // those that nobody waited for any more
        final CountDownLatch open = new CountDownLatch(1); // lets them go

        Pair(Strategy values) {
            this.values = values;
            offer(server);
            server.start();
            client = RpcClient.create(server.address());
        }

        void offer(RpcServer to) {
            to.register("echo", (context, arguments) -> Value.createList(Strategy.current(), arguments));
            to.register("first", (context, arguments) -> arguments.get(0));
            to.register("add", (context, arguments) -> {
                float[] sum = Tensors.toFloats(arguments.get(0).tensor());
                float[] other = Tensors.toFloats(arguments.get(1).tensor());
                for (int i = 0; i < sum.length; i++) {
                    sum[i] += other[i];
                }
                return Value.createTensor(Strategy.current(), copyOf(sum));
            });
            to.register("nothing", (context, arguments) -> null);
            to.register("says", (context, arguments) -> Value.createText(Strategy.current(),
                                        context.method() + " " + context.timeout() + " " + context.isCancelled()));
            to.register("fails", (context, arguments) -> {
                throw new DistException(Status.NOT_FOUND, "no row " + arguments.get(0).text(), null);
            });
            to.register("throws", (context, arguments) -> { throw new IOException("boom"); });
            to.register("overflows", (context, arguments) -> deep(arguments));
            to.register("close", (context, arguments) -> {
                to.close();
                return null;
            });
            to.register("wait", (context, arguments) -> {
                inside.incrementAndGet();
                while (!open.await(1, TimeUnit.MILLISECONDS)) {
                    if (context.isCancelled()) {
                        ended.incrementAndGet();
                        throw new DistException(Status.CANCELLED, "nobody waits", null);
                    }
                }
                return null;
            });
        }

        private static Value deep(List<Value> arguments) {
            return deep(new ArrayList<>(arguments));
        }

        Value text(String text) {
            return Value.createText(values, text);
        }

        void await(AtomicInteger counter, int wanted) throws InterruptedException {
            until(() -> counter.get() >= wanted);
        }

        @Override
        public void close() {
            client.close();
            server.close();
        }
    }

    private static void calls(Pair pair) {
        Value one = Value.createTensor(pair.values, copyOf(new float[] {1, 2}));
        Value ten = Value.createTensor(pair.values, copyOf(new float[] {10, 20}));
        try (Value sum = pair.client.call("add", one, ten)) {
            floats(sum.tensor(), 11, 22);
        }
        Value list = Value.createList(pair.values, List.of(one, pair.text("ä €")));
        Value dict = Value.createDict(pair.values, Map.of("b", list, "a", one));
        for (List<Value> arguments : List.of(List.<Value>of(), List.of(one), List.of(list),
                     List.of(dict, Value.createNone(pair.values), pair.text(""), list))) {
            try (Value echo = pair.client.call("echo", arguments.toArray(new Value[0]))) {
                equal(Value.createList(pair.values, arguments).describe(), echo.describe());
            }
        }
        equal(dict.describe(), pair.client.call("first", dict).describe());
        equal(ValueKind.NONE, pair.client.call("nothing").kind());
        equal(List.of("add", "close", "echo", "fails", "first", "nothing", "overflows", "says", "throws", "wait"),
                pair.client.methods());
        equal("says Optional[PT1H] false",
                pair.client.call("says", RpcCallOptions.DEFAULT.timeout(Duration.ofHours(1))).text());
        equal("says Optional.empty false",
                pair.client.call("says", RpcCallOptions.DEFAULT.timeout(Duration.ofNanos(-1))).text());
        equal("says Optional[PT10M] false", pair.client.call("says").text());
    }

    private static void failures(Pair pair) {
        Map<String, List<?>> expected = Map.of("fails", List.of(Status.NOT_FOUND, "no row 7"), "throws",
                List.of(Status.UNKNOWN, "java.io.IOException: boom"), "overflows",
                List.of(Status.UNKNOWN, "StackOverflowError"), "nowhere",
                List.of(Status.NOT_FOUND, "the server has no method nowhere"), "close",
                List.of(Status.FAILED_PRECONDITION, "RpcServer.close(): this thread is in one of the server's methods"));
        expected.forEach((method, how) -> {
            refused((Status) how.get(0), (String) how.get(1), () -> pair.client.call(method, pair.text("7")));
            try (RemoteValue remote = pair.client.begin(method, pair.text("7"))) {
                for (int i = 0; i < 2; i++) {
                    refused((Status) how.get(0), (String) how.get(1), remote::get);
                }
                check(remote.isDone());
            }
        });
        equal("7", pair.client.call("first", pair.text("7")).text()); // all goes on
    }

    private static void cancelled(Pair pair) throws Exception {
        try (Cancel stop = Cancel.create(); Cancel other = Cancel.create()) {
            RemoteValue goesOn = pair.client.begin("wait", RpcCallOptions.DEFAULT.cancel(other));
            RpcCallOptions options = RpcCallOptions.DEFAULT.cancel(stop);
            FutureTask<Void> call = new FutureTask<>(() -> { pair.client.call("wait", options); }, null);
            new Thread(call).start();
            pair.await(pair.inside, 2);
            stop.signal("enough");
            refused(Status.CANCELLED, "enough", () -> result(call));
            refused(Status.CANCELLED, "enough", () -> pair.client.call("wait", options));
            refused(Status.CANCELLED, "enough", () -> pair.client.begin("wait", options));
            refused(Status.CANCELLED, "enough", () -> pair.client.methods(options));
            pair.await(pair.ended, 1);
            check(!goesOn.isDone());
            other.signal("too long");
            refused(Status.CANCELLED, "too long", goesOn::get);
            goesOn.close();
            pair.await(pair.ended, 2);
        }
        RemoteValue remote = pair.client.begin("wait");
        pair.await(pair.inside, 3);
        remote.cancel();
        refused(Status.CANCELLED, "was cancelled", remote::get);
        remote.close();
        pair.client.begin("wait").close();
        pair.await(pair.ended, 3);
    }

    private static void interrupted(Pair pair) throws Exception {
        AtomicInteger still = new AtomicInteger();
        RemoteValue remote = pair.client.begin("wait");
        pair.await(pair.inside, 1);
        for (Tap.Test wait : List.<Tap.Test>of(() -> pair.client.call("wait"), remote::get)) {
            boolean isCall = still.get() == 0;
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
            if (isCall) {
                pair.await(pair.inside, 2);
            }
            thread.interrupt();
            DistException e = thrown(DistException.class, () -> result(task));
            equal(Status.CANCELLED, e.status());
            check(e.getCause() instanceof InterruptedException, e);
        }
        equal(2, still.get());
        pair.await(pair.ended, 1);
        Thread.currentThread().interrupt(); // before
        refused(Status.CANCELLED, "interrupted", () -> pair.client.call("wait"));
        check(Thread.interrupted());
        check(!remote.isDone());
        pair.open.countDown();
        equal(ValueKind.NONE, remote.get().kind());
    }

    private static void deadlines(Pair pair) throws Exception {
        RpcCallOptions soon = RpcCallOptions.DEFAULT.timeout(SOON);
        refused(Status.DEADLINE_EXCEEDED, "no answer in time", () -> pair.client.call("wait", soon));
        refused(Status.DEADLINE_EXCEEDED, "no answer in time", () -> pair.client.begin("wait", soon).get());
        try (RpcClient hasty = RpcClient.create(pair.server.address(), RpcClientOptions.DEFAULT.timeout(SOON))) {
            refused(Status.DEADLINE_EXCEEDED, "no answer in time", () -> hasty.call("wait"));
        }
        RemoteValue remote = pair.client.begin("wait");
        for (Duration each : List.of(Duration.ZERO, SOON, SOON)) { // the end of the wait is not that of the call
            refused(Status.DEADLINE_EXCEEDED, "The call continues to run", () -> remote.get(each));
        }
        check(!remote.isDone());
        pair.open.countDown();
        equal(ValueKind.NONE, remote.get(Duration.ofNanos(-1)).kind());
        equal(ValueKind.NONE, remote.get(Duration.ZERO).kind());
        // Nobody is there, and no call of this client's was on its way when the server ended.
        try (RpcClient late = RpcClient.create(pair.server.address())) {
            pair.server.close();
            refused(Status.DEADLINE_EXCEEDED, "cannot be reached",
                    () -> late.call("wait", RpcCallOptions.DEFAULT.timeout(Duration.ofMillis(300))));
        }
    }

    private static void many(Pair pair) throws Exception {
        int calls = 1000;
        List<RemoteValue> remotes = new ArrayList<>();
        for (int i = 0; i < calls; i++) {
            try (Value number = pair.text("" + i)) {
                remotes.add(pair.client.begin("first", number));
            }
        }
        for (int i = calls - 1; i >= 0; i--) {
            try (RemoteValue remote = remotes.get(i); Value number = remote.get()) {
                equal("" + i, number.text());
            }
        }
        List<FutureTask<Void>> tasks = new ArrayList<>();
        for (int t = 0; t < 8; t++) {
            String mine = "of thread " + t;
            tasks.add(new FutureTask<>(() -> {
                for (int i = 0; i < 100; i++) {
                    try (Value text = pair.text(mine + i); Value back = pair.client.call("first", text)) {
                        equal(mine + i, back.text());
                    }
                }
                return null;
            }));
            new Thread(tasks.get(t)).start();
        }
        for (FutureTask<Void> task : tasks) {
            task.get();
        }
    }

    private static void futures(Pair pair) throws Exception {
        List<CompletableFuture<String>> all = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            RemoteValue remote = pair.client.begin("first", pair.text("" + i));
            all.add(remote.future().thenApply(value -> {
                try (value) {
                    return value.text();
                } finally {
                    remote.close();
                }
            }));
        }
        for (int i = 0; i < all.size(); i++) {
            equal("" + i, all.get(i).get(1, TimeUnit.MINUTES));
        }
        ExecutionException failed = thrown(ExecutionException.class,
                () -> pair.client.begin("fails", pair.text("8")).future().get());
        equal(Status.NOT_FOUND, ((DistException) failed.getCause()).status());

        CompletableFuture<Value> cancelled = pair.client.begin("wait").future();
        pair.await(pair.inside, 1);
        check(cancelled.cancel(true));
        thrown(CancellationException.class, cancelled::get);
        pair.await(pair.ended, 1);
        RemoteValue remote = pair.client.begin("wait");
        CompletableFuture<Value> closed = remote.future();
        pair.await(pair.inside, 2);
        remote.close();
        equal(Status.CANCELLED,
                ((DistException) thrown(ExecutionException.class, closed::get).getCause()).status());
        pair.await(pair.ended, 2);
    }

    private static void serverEnds(Pair pair) throws Exception {
        List<RemoteValue> calls = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            calls.add(pair.client.begin("wait"));
        }
        pair.await(pair.inside, 2); // the third one waits for a thread
        refused(Status.DEADLINE_EXCEEDED, "", () -> pair.client.call("echo", RpcCallOptions.DEFAULT.timeout(SOON)));
        String address = pair.server.address();
        pair.server.close();
        List<Status> ends = calls.stream().map(call -> thrown(DistException.class, call::get).status()).sorted().toList();
        equal(List.of(Status.CANCELLED, Status.CANCELLED, Status.UNAVAILABLE), ends);
        equal(2, pair.ended.get());
        // The same client finds another server at the address.
        try (RpcServer again = RpcServer.create(address)) {
            pair.offer(again);
            again.start();
            equal("7", pair.client.call("first", pair.text("7")).text());
        }
    }

    private static void clientEnds(Pair pair) throws Exception {
        RemoteValue remote = pair.client.begin("wait");
        FutureTask<Void> call = new FutureTask<>(() -> { pair.client.call("wait"); }, null);
        new Thread(call).start();
        pair.await(pair.inside, 2);
        pair.client.close();
        refused(Status.CANCELLED, "the client is closed", () -> result(call));
        refused(Status.CANCELLED, "the client has been closed", remote::get);
        pair.await(pair.ended, 2);
        remote.close();
    }

    /** A method that runs a strategy until nobody waits any more. */
    private static void runEnds(Pair pair) throws Exception {
        AtomicInteger begun = new AtomicInteger();
        List<Status> ends = Collections.synchronizedList(new ArrayList<>());
        try (Strategy two = Strategy.create(2); RpcServer server = RpcServer.create("127.0.0.1:0")) {
            server.register("run", (context, arguments) -> {
                Cancel cancel = context.cancel();
                DistException end = thrown(DistException.class, () -> two.run(replica -> {
                    if (begun.incrementAndGet() == 1) { // the other one leaves it waiting
                        replica.barrier();
                    } else {
                        until(cancel::isSignalled);
                        check(context.isCancelled());
                    }
                }, RunOptions.DEFAULT.cancel(cancel)));
                ends.add(end.status());
                throw end;
            });
            server.start();
            try (RpcClient client = RpcClient.create(server.address()); RemoteValue run = client.begin("run")) {
                pair.await(begun, 2);
                run.cancel();
                until(() -> !ends.isEmpty());
            }
            equal(List.of(Status.CANCELLED), ends);
        }
    }
}
