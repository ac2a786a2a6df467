// SPDX-License-Identifier: Apache-2.0

package inference_host;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.libdist.Batch;
import org.libdist.Batcher;
import org.libdist.DistException;
import org.libdist.Instances;
import org.libdist.InstancesOptions;
import org.libdist.Item;
import org.libdist.ItemOptions;
import org.libdist.Replica;
import org.libdist.ReplicaThreads;
import org.libdist.Status;
import org.libdist.Strategy;
import org.libdist.StrategyOptions;
import org.libdist.SubmitOptions;
import org.libdist.Version;
import org.libdist.Versions;

/**
 * A sentence encoder behind HTTP, the Java version of examples/inference_host. libdist decides when, on which
 * replica and in which batch a request runs. It also enforces deadlines, priorities and the queue limit, and
 * drains the queue on shutdown. ONNX Runtime computes on the instance's own thread.
 *
 * <p>{@code Host [OPTIONS] MODELS FILE}
 */
public final class Host implements AutoCloseable {
    private final Options options;
    private final Strategy strategy;
    private final Versions<Model> versions = Versions.create(Model::close);
    private final AtomicLong accepted = new AtomicLong();
    private final AtomicBoolean swapping = new AtomicBoolean();
    private volatile boolean draining;
    private volatile Model like; // the first model, possibly closed; new versions must have the same sizes
    private Instances instances; // this and the members below are null until open() sets them
    private Batcher<Text, Void> batcher;
    private Http http;

    /** A text that has not been answered yet. */
    private static final class Text extends Model.Text {
        private byte[] answer;

        Text(int[] ids) {
            super(ids);
        }
    }

    private Host(Options options) {
        this.options = options;
        strategy = Strategy.create(
                StrategyOptions.DEFAULT.numReplicas(options.replicas()).threads(ReplicaThreads.LIBRARY));
    }

    // ---- Instances
    // --------------------------------------------------------------------------------------------

    private Workspace createState(Replica replica) {
        return new Workspace(options.maxItems(), like.outputs());
    }

    private void warmUp(Replica replica) throws Exception {
        versions.get(replica).content().warmUp(
                replica.instanceState(Workspace.class), options.maxItems(), Options.BUCKETS);
    }

    private void step(Replica replica, Batch<Text, Void> batch) throws Exception {
        Version<Model> seen = versions.get(replica);
        Text[] texts = new Text[batch.size()];
        for (int i = 0; i < texts.length; i++) {
            texts[i] = batch.input(i);
        }
        seen.content().encode(replica.instanceState(Workspace.class), texts);
        for (int i = 0; i < texts.length; i++) {
            if (texts[i].failure() != null) {
                batch.end(i, texts[i].failure());
            } else {
                texts[i].answer = Json.embedding(seen.number(), texts[i].vector());
            }
        }
    }

    // ---- Requests ---------------------------------------------------------------------------------------------

    private CompletionStage<Http.Answer> encode(Http.Request request) {
        Text text = new Text(Json.ids(request.body(), Model.MOST_TOKENS));
        ItemOptions item = ItemOptions.DEFAULT
                .timeout(request.milliseconds("deadline-ms"))
                .priority((int) request.number("priority", SubmitOptions.PRIORITY_MIN, SubmitOptions.PRIORITY_MAX))
                .length(text.ids().length)
                .executor(http.threads());
        Item<Void> work = batcher.submit(text, item);
        accepted.incrementAndGet();
        request.counts();
        return work.thenApply(nothing -> Http.Answer.json(text.answer));
    }

    /** Blocks its thread until no request uses the old version any more. Every request has its own thread. */
    private CompletionStage<Http.Answer> swap(Http.Request request) {
        if (!swapping.compareAndSet(false, true)) {
            throw new DistException(Status.UNAVAILABLE, "another swap is under way", null);
        }
        try {
            Model model = Model.load(Json.file(request.body(), options.models()), like);
            long version = versions.publish(model);
            versions.await(version);
            return CompletableFuture.completedFuture(Http.Answer.json(Json.version(version)));
        } finally {
            swapping.set(false);
        }
    }

    private CompletionStage<Http.Answer> health(Http.Request request) {
        byte[] now = Json.health(draining, versions.latest(), batcher.numWaiting(), batcher.numActive(),
                accepted.get(), http.answered(), http.gone());
        return CompletableFuture.completedFuture(new Http.Answer(draining ? 503 : 200, Http.JSON, now));
    }

    private CompletionStage<Http.Answer> metrics(Http.Request request) {
        return CompletableFuture.completedFuture(Http.Answer.text(strategy.metricsText(null)));
    }

    // ---- Start and shutdown
    // -----------------------------------------------------------------------------------

    private void open() throws Exception {
        like = Model.load(options.models().resolve(options.file()), null);
        versions.publish(like);
        instances = strategy.openInstances(
                InstancesOptions.DEFAULT.createState(this::createState).warmUp(this::warmUp));
        batcher = Batcher.create(strategy, this::step, options.batcher());
        http = new Http(options.port())
                .route("POST", "/encode", this::encode)
                .route("POST", "/swap", this::swap)
                .route("GET", "/health", this::health)
                .route("GET", "/metrics", this::metrics)
                .start();
        System.out.println("http://127.0.0.1:" + http.port());
    }

    /**
     * Answers all accepted requests and accepts no new ones. Throws if some clients did not get their answer.
     */
    private void stop() throws InterruptedException {
        draining = true;
        http.drain();
        try {
            instances.close(options.drain());
        } finally {
            http.stop(options.drain());
            System.out.printf("accepted %d, answered %d, gone %d%n", accepted.get(), http.answered(), http.gone());
        }
        if (accepted.get() != http.answered() + http.gone()) {
            throw new DistException(Status.DEADLINE_EXCEEDED, "some requests have not ended", null);
        }
    }

    @Override
    public void close() {
        if (batcher != null) {
            batcher.close();
        }
        strategy.close();
        versions.close();
    }

    public static void main(String[] args) {
        Options options = Options.parse(args);
        Signals ends = Signals.await("TERM", "INT");
        int status = 0;
        try (Host host = new Host(options)) {
            host.open();
            ends.join();
            host.stop();
        } catch (Exception e) {
            System.err.println("inference_host: " + e.getMessage());
            status = 1;
        }
        System.exit(status);
    }
}
