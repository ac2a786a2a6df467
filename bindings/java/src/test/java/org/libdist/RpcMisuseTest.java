// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.RpcTest.refused;
import static org.libdist.RpcTest.until;
import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;

import java.util.List;
import java.util.function.BooleanSupplier;
import org.libdist.RpcTest.Pair;

/** What becomes of servers, clients and calls that a program forgets, and of those that it closes too early. */
final class RpcMisuseTest {
    private RpcMisuseTest() {}

    static void addTo(Tap tap) {
        tap.add("forgotten servers, clients and remote calls end", () -> RpcTest.with(RpcMisuseTest::forgotten));
        tap.add("misuse of servers and clients", () -> RpcTest.with(RpcMisuseTest::misuse));
    }

    private static void collected(BooleanSupplier so) throws InterruptedException {
        until(() -> {
            System.gc();
            return so.getAsBoolean();
        });
    }

    private static void forgotten(Pair pair) throws Exception {
        long before = Upcalls.lastToken();
        forgetServer(before);
        collected(() -> Upcalls.sizeSince(before) == 0);
        forgetCall(pair);
        pair.await(pair.inside, 1);
        collected(() -> pair.ended.get() == 1);
        // A client is there while its remote values are, and a server while it serves.
        RemoteValue remote = forgetClient(pair);
        pair.await(pair.inside, 2);
        String address = serve();
        for (int i = 0; i < 5; i++) {
            System.gc();
            Thread.sleep(10);
        }
        try (RpcClient client = RpcClient.create(address)) {
            client.call("stop").close();
        }
        check(!remote.isDone());
        pair.open.countDown();
        equal(ValueKind.NONE, remote.get().kind());
        collected(() -> Upcalls.sizeSince(before) == 0);
    }

    private static void forgetServer(long before) {
        RpcServer unused = RpcServer.create("127.0.0.1:0");
        RpcFunction nothing = (context, arguments) -> null;
        unused.register("a", nothing);
        unused.register("b", nothing);
        refused(Status.ALREADY_EXISTS, "b", () -> unused.register("b", nothing));
        refused(Status.INVALID_ARGUMENT, "dist.", () -> unused.register("dist.c", nothing));
        equal(2, Upcalls.sizeSince(before));
    }

    private static void forgetCall(Pair pair) {
        RpcClient.create(pair.server.address()).begin("wait");
    }

    private static RemoteValue forgetClient(Pair pair) {
        return RpcClient.create(pair.server.address()).begin("wait");
    }

    private static String serve() {
        RpcServer server = RpcServer.create("127.0.0.1:0");
        server.register("stop", (context, arguments) -> {
            new Thread(server::close).start();
            return null;
        });
        server.start();
        return server.address();
    }

    private static void misuse(Pair pair) {
        for (String address : List.of("", "host", "host:65536")) {
            refused(Status.INVALID_ARGUMENT, "", () -> RpcServer.create(address));
            refused(Status.INVALID_ARGUMENT, "", () -> RpcClient.create(address));
        }
        refused(Status.INVALID_ARGUMENT, "numThreads is -1",
                () -> RpcServer.create("127.0.0.1:0", RpcServerOptions.DEFAULT.numThreads(-1)));
        refused(Status.INVALID_ARGUMENT, "maxQueued is -1",
                () -> RpcServer.create("127.0.0.1:0", RpcServerOptions.DEFAULT.maxQueued(-1)));
        RpcFunction nothing = (context, arguments) -> null;
        refused(Status.FAILED_PRECONDITION, "started", () -> pair.server.register("late", nothing));
        refused(Status.FAILED_PRECONDITION, "already been started", pair.server::start);
        Value one = pair.text("1");
        Value object = Value.wrapObject(pair.values, "x");
        refused(Status.INVALID_ARGUMENT, "cannot be sent", () -> pair.client.call("echo", one, object));
        refused(Status.INVALID_ARGUMENT, "cannot be sent", () -> pair.client.begin("echo", one, object));
        check(thrown(NullPointerException.class, () -> pair.client.call("echo", one, null))
                        .getMessage()
                        .equals("arguments has a null at 1"));
        refused(Status.INVALID_ARGUMENT, "1 to 255 bytes", () -> pair.client.call(""));
        thrown(IllegalArgumentException.class, () -> pair.client.call("a\0b"));
        Value gone = pair.text("gone");
        gone.close();
        refused(Status.FAILED_PRECONDITION, "the value is closed", () -> pair.client.call("echo", gone));

        RpcServer fresh = RpcServer.create("127.0.0.1:0");
        fresh.close();
        fresh.close();
        for (Tap.Test call : List.<Tap.Test>of(fresh::start, fresh::address, () -> fresh.register("x", nothing))) {
            refused(Status.FAILED_PRECONDITION, "the server is closed", call);
        }
        RemoteValue remote = pair.client.begin("first", one);
        Value value = remote.get();
        pair.client.close();
        pair.client.close();
        for (Tap.Test call : List.<Tap.Test>of(() -> pair.client.call("first", one),
                     () -> pair.client.begin("first", one), pair.client::methods)) {
            refused(Status.FAILED_PRECONDITION, "the client is closed", call);
        }
        equal(value, remote.get()); // stays readable
        remote.cancel(); // it has ended
        remote.close();
        remote.close();
        for (Tap.Test call : List.<Tap.Test>of(remote::get, remote::isDone, remote::cancel, remote::future)) {
            refused(Status.FAILED_PRECONDITION, "the remote value is closed", call);
        }
        equal("1", value.text());
    }
}
