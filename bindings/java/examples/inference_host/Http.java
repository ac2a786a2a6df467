// SPDX-License-Identifier: Apache-2.0

package inference_host;

import com.sun.management.UnixOperatingSystemMXBean;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
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
import java.util.stream.Collectors;
import org.libdist.DistException;
import org.libdist.Status;

/**
 * An HTTP server on the loopback interface, based on the JDK's server, whose I/O is blocking. A request
 * occupies a thread while it is read and while its answer is written, but not in between.
 */
final class Http {
    static final String JSON = "application/json";

    private static final int MOST_BODY = 16384;
    private static final int OTHER_FILES = 256; // descriptors for other files
    private static final int MOST_CONNECTIONS = mostConnections(); // also the maximum number of threads
    private static final int BACKLOG = 1024;
    private static final int IDLE_SECONDS = 60; // a connection that sends no complete request for this long is closed
    private static final int THREADS = 8; // always present; further threads end when idle
    private static final int THREAD_IDLE_SECONDS = 5;
    private static final int STOP_SECONDS = 1; // until connections are closed, after the listening socket
    private static final Duration TO_WRITE = Duration.ofSeconds(10); // minimum time to write the last answers
    private static final Duration QUIET = Duration.ofMillis(100); // without requests, before connections are closed

    static { // the server's classes read these properties when they are loaded
        Map.of("sun.net.httpserver.nodelay", "true", // without this, head and body are delayed, as they are two packets
                "sun.net.httpserver.idleInterval", "" + IDLE_SECONDS,
                "sun.net.httpserver.maxReqTime", "" + IDLE_SECONDS,
                "sun.net.httpserver.maxIdleConnections", "" + MOST_CONNECTIONS,
                "jdk.httpserver.maxConnections", "" + MOST_CONNECTIONS)
                .forEach(System.getProperties()::putIfAbsent);
    }

    private static int mostConnections() {
        long files = ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean system
                ? system.getMaxFileDescriptorCount() : Long.MAX_VALUE;
        return (int) Math.min(4096, Math.max(files, OTHER_FILES + 64) - OTHER_FILES);
    }

    private final HttpServer server;
    private final Map<String, Route> routes = new HashMap<>();
    private final ThreadPoolExecutor threads = new ThreadPoolExecutor(
            THREADS, Integer.MAX_VALUE, THREAD_IDLE_SECONDS, TimeUnit.SECONDS, new SynchronousQueue<>());
    private final Phaser open = new Phaser(1); // requests read but not answered, plus one for the server
    private volatile long latestNanos = System.nanoTime(); // when a request came
    private final AtomicLong answered = new AtomicLong();
    private final AtomicLong gone = new AtomicLong();
    private volatile boolean draining;

    /**
     * Produces the answer to a request, now or later. If it throws or the stage fails, the client gets the
     * error.
     */
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

    /** A request that has been read completely. */
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

        /**
         * Includes the request in {@link Http#answered} or {@link Http#gone}. Call it before the answer is
         * sent.
         */
        void counts() {
            counts = true;
        }

        /** Returns a header or else a query parameter; null if neither exists. */
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

        /** Returns a parameter as a number; 0 if it is absent. */
        long number(String name, long least, long most) {
            String said = parameter(name);
            try {
                long number = said == null ? 0 : Long.parseLong(said);
                if (said == null || (number >= least && number <= most)) {
                    return number;
                }
            } catch (NumberFormatException e) {
                // handled like a number out of range
            }
            throw new DistException(Status.INVALID_ARGUMENT,
                    name + " is not a whole number from " + least + " to " + most, null);
        }

        Duration milliseconds(String name) {
            return Duration.ofMillis(number(name, 1, 1_000_000_000));
        }
    }

    /** @param port 0 selects a free one */
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

    /** An executor for completing requests. It writes the answers, which can block if a client is slow. */
    Executor threads() {
        return threads;
    }

    // ---- Requests
    // ---------------------------------------------------------------------------------------------

    private void come(HttpExchange exchange) throws IOException {
        Request request;
        try (InputStream body = exchange.getRequestBody()) {
            request = new Request(exchange, body.readNBytes(MOST_BODY + 1));
            body.transferTo(OutputStream.nullOutputStream()); // discard the rest
        }
        latestNanos = System.nanoTime();
        if (open.register() < 0) { // the server has stopped
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
        String path = exchange.getRequestURI().getPath();
        Route route = routes.get(exchange.getRequestMethod() + " " + path);
        if (route == null) {
            String allowed = routes.keySet().stream().filter(key -> key.endsWith(" " + path))
                    .map(key -> key.substring(0, key.indexOf(' '))).collect(Collectors.joining(", "));
            if (allowed.isEmpty()) {
                throw new DistException(Status.NOT_FOUND, "there is no such path", null);
            }
            exchange.getResponseHeaders().set("Allow", allowed);
            return CompletableFuture.completedFuture(
                    new Answer(405, JSON, Json.error("the path does not have this method")));
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
            // the client has disconnected
        } finally {
            if (request.counts) {
                (whole ? answered : gone).incrementAndGet();
            }
            open.arriveAndDeregister();
        }
    }

    // ---- Shutdown
    // ---------------------------------------------------------------------------------------------

    /** From now on, each answer tells the client that its connection will be closed. */
    void drain() {
        draining = true;
    }

    /** The number of counted requests whose answer was sent completely. */
    long answered() {
        return answered.get();
    }

    /** The number of counted requests whose client had disconnected. */
    long gone() {
        return gone.get();
    }

    /**
     * Waits for up to {@code patience} until all requests have been answered and no more come: closing the listening
     * socket resets connections that clients have just made. Then closes all connections.
     */
    void stop(Duration patience) throws InterruptedException {
        long millis = Math.max(patience.toMillis(), TO_WRITE.toMillis());
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        for (long now = System.nanoTime(); now - latestNanos < QUIET.toNanos() && now < end; now = System.nanoTime()) {
            TimeUnit.NANOSECONDS.sleep(QUIET.toNanos() - (now - latestNanos));
        }
        try {
            open.awaitAdvanceInterruptibly(open.arriveAndDeregister(), millis, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            // slow clients lose their answers
        }
        server.stop(STOP_SECONDS); // closes the listening socket first
        threads.shutdown();
        threads.awaitTermination(TO_WRITE.toMillis(), TimeUnit.MILLISECONDS);
    }
}
