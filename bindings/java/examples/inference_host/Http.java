// SPDX-License-Identifier: Apache-2.0

package inference_host;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.Phaser;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.libdist.DistException;
import org.libdist.Status;

/**
 * HTTP on loopback by the JDK's own server, which reads and writes without a selector: a request has a thread while it
 * comes and while its answer goes, and none in between.
 */
final class Http {
    static final String JSON = "application/json";

    private static final int MOST_BODY = 16384;
    private static final int MOST_CONNECTIONS = 4096; // and as many threads, where all clients are slow
    private static final int BACKLOG = 1024;
    private static final int IDLE_SECONDS = 60; // a connection on which no whole request comes for so long is closed
    private static final int THREADS = 8; // that are always there; others end when they are idle
    private static final int THREAD_IDLE_SECONDS = 5;
    private static final Duration TO_WRITE = Duration.ofSeconds(10); // that answers have in any case, at the end

    static { // read by the server's classes when they are loaded
        Map.of("sun.net.httpserver.nodelay", "true", // a head and a body are two packets
                "sun.net.httpserver.idleInterval", "" + IDLE_SECONDS,
                "sun.net.httpserver.maxReqTime", "" + IDLE_SECONDS,
                "sun.net.httpserver.maxIdleConnections", "" + MOST_CONNECTIONS,
                "jdk.httpserver.maxConnections", "" + MOST_CONNECTIONS)
                .forEach(System.getProperties()::putIfAbsent);
    }

    private final HttpServer server;
    private final Map<String, Route> routes = new HashMap<>();
    private final ThreadPoolExecutor threads = new ThreadPoolExecutor(
            THREADS, Integer.MAX_VALUE, THREAD_IDLE_SECONDS, TimeUnit.SECONDS, new SynchronousQueue<>());
    private final Phaser open = new Phaser(1); // requests that have come whole and are not answered; and this
    private final AtomicLong answered = new AtomicLong();
    private final AtomicLong gone = new AtomicLong();
    private volatile boolean draining;

    /** What a request is answered with, now or later. What it throws, or the stage fails with, is told the client. */
    @FunctionalInterface
    interface Route {
        CompletionStage<Answer> begin(Request request) throws Exception;
    }

    record Answer(int code, String type, byte[] body) {
        static Answer json(byte[] body) {
            return new Answer(200, JSON, body);
        }

        static Answer text(String body) {
            return new Answer(200, "text/plain; version=0.0.4", body.getBytes(StandardCharsets.UTF_8));
        }

        static Answer of(Throwable failure) {
            Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
            int code = cause instanceof DistException dist ? codeOf(dist.status()) : 500;
            return new Answer(code, JSON, Json.error("" + cause.getMessage()));
        }
    }

    private static int codeOf(Status status) {
        return switch (status) {
            case INVALID_ARGUMENT, OUT_OF_RANGE, DATA_LOSS -> 400;
            case NOT_FOUND -> 404;
            case RESOURCE_EXHAUSTED, UNAVAILABLE, CANCELLED -> 503;
            case DEADLINE_EXCEEDED -> 504;
            default -> 500;
        };
    }

    /** A request, which has come whole. */
    static final class Request {
        private final HttpExchange exchange;
        private final byte[] body;
        private boolean counts;

        private Request(HttpExchange exchange, byte[] body) {
            this.exchange = exchange;
            this.body = body;
        }

        byte[] body() {
            return body;
        }

        /** Before its answer is there: it is in {@link Http#answered}, or {@link Http#gone}. */
        void counts() {
            counts = true;
        }

        /** A header, or else a parameter of the query; null: neither. */
        private String parameter(String name) {
            String said = exchange.getRequestHeaders().getFirst(name);
            String query = exchange.getRequestURI().getRawQuery();
            for (String one : said != null || query == null ? new String[0] : query.split("&")) {
                if (one.startsWith(name + "=")) {
                    return one.substring(name.length() + 1);
                }
            }
            return said;
        }

        /** A parameter; 0: there is none. */
        long number(String name, long least, long most) {
            String said = parameter(name);
            try {
                long number = said == null ? 0 : Long.parseLong(said);
                if (said == null || (number >= least && number <= most)) {
                    return number;
                }
            } catch (NumberFormatException e) {
                // as one that is out of bounds
            }
            throw new DistException(Status.INVALID_ARGUMENT,
                    name + " is not a whole number from " + least + " to " + most, null);
        }

        Duration milliseconds(String name) {
            return Duration.ofMillis(number(name, 1, 1_000_000_000));
        }
    }

    /** @param port 0: any that is free */
    Http(int port) throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), BACKLOG);
        server.setExecutor(threads);
        server.createContext("/", this::come);
    }

    Http route(String method, String path, Route route) {
        routes.put(method + " " + path, route);
        return this;
    }

    Http start() {
        threads.prestartAllCoreThreads();
        server.start();
        return this;
    }

    int port() {
        return server.getAddress().getPort();
    }

    /** Where what becomes of a request may be done: an answer is written there, whose client may be slow. */
    Executor threads() {
        return threads;
    }

    // ---- A request --------------------------------------------------------------------------------------------

    private void come(HttpExchange exchange) throws IOException {
        Request request;
        try (InputStream body = exchange.getRequestBody()) {
            request = new Request(exchange, body.readNBytes(MOST_BODY + 1));
            body.transferTo(OutputStream.nullOutputStream()); // more is not kept
        }
        if (open.register() < 0) { // all is over
            exchange.close();
            return;
        }
        CompletionStage<Answer> answer;
        try {
            answer = begin(request);
        } catch (Exception e) {
            answer = CompletableFuture.failedStage(e);
        }
        answer.whenComplete((good, failure) -> send(request, failure == null ? good : Answer.of(failure)));
    }

    private CompletionStage<Answer> begin(Request request) throws Exception {
        HttpExchange exchange = request.exchange;
        Route route = routes.get(exchange.getRequestMethod() + " " + exchange.getRequestURI().getPath());
        if (route == null) {
            throw new DistException(Status.NOT_FOUND, "nothing is there for that method and path", null);
        }
        if (request.body.length > MOST_BODY) {
            throw new DistException(Status.INVALID_ARGUMENT, "the body is too long", null);
        }
        return route.begin(request);
    }

    private void send(Request request, Answer answer) {
        boolean whole = false;
        try (HttpExchange exchange = request.exchange) {
            exchange.getResponseHeaders().set("Content-Type", answer.type);
            if (draining) {
                exchange.getResponseHeaders().set("Connection", "close");
            }
            boolean head = exchange.getRequestMethod().equals("HEAD");
            exchange.sendResponseHeaders(answer.code, head ? -1 : answer.body.length);
            if (!head) {
                exchange.getResponseBody().write(answer.body);
                exchange.getResponseBody().close();
            }
            whole = true;
        } catch (IOException e) {
            // the client has gone
        } finally {
            if (request.counts) {
                (whole ? answered : gone).incrementAndGet();
            }
            open.arriveAndDeregister();
        }
    }

    // ---- The end ----------------------------------------------------------------------------------------------

    /** From now on each answer says that it is its connection's last. */
    void drain() {
        draining = true;
    }

    /** Of the requests that count: those whose answer went out whole. */
    long answered() {
        return answered.get();
    }

    /** Those whose client had gone. */
    long gone() {
        return gone.get();
    }

    /** Waits until all requests that have come whole are answered, for as long as that, and closes all connections. */
    void stop(Duration patience) throws InterruptedException {
        try {
            long millis = Math.max(patience.toMillis(), TO_WRITE.toMillis());
            open.awaitAdvanceInterruptibly(open.arriveAndDeregister(), millis, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            // who does not take its answer goes without
        }
        server.stop(0);
        threads.shutdown();
        threads.awaitTermination(TO_WRITE.toMillis(), TimeUnit.MILLISECONDS);
    }
}
