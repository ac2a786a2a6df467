// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;

import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.DataPointSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import io.prometheus.metrics.model.snapshots.InfoSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.libdist.prometheus.StrategyCollector;
import org.slf4j.Logger;
import org.slf4j.event.EventRecordingLogger;
import org.slf4j.event.Level;
import org.slf4j.event.SubstituteLoggingEvent;
import org.slf4j.helpers.SubstituteLogger;

/** libdist with other libraries: SLF4J and the Prometheus Java client. */
public final class ClientsTest {
    private ClientsTest() {}

    public static void main(String[] args) {
        Tap tap = new Tap();
        tap.add("SLF4J receives the log lines", ClientsTest::slf4j);
        tap.add("a Prometheus registry has the metrics of strategies", ClientsTest::prometheus);
        tap.add("a collector drops strategies that are removed or closed", ClientsTest::dropped);
        tap.runAll();
    }

    private static void slf4j() throws InterruptedException {
        LinkedBlockingQueue<SubstituteLoggingEvent> events = new LinkedBlockingQueue<>();
        Logger logger = new EventRecordingLogger(new SubstituteLogger("libdist", events, true), events);
        LogFunction log = LogFunction.of(logger::error, logger::warn, logger::info);
        StrategyOptions options =
                StrategyOptions.DEFAULT.numReplicas(1).threads(ReplicaThreads.LIBRARY).log(log);
        try (Strategy strategy = Strategy.create(options);
                Instances instances = strategy.openInstances(InstancesOptions.DEFAULT.stuck(Duration.ofMillis(1)))) {
            CountDownLatch logged = new CountDownLatch(1);
            Request<Void> late = strategy.submit(replica -> {
                logged.await(); // ignores its deadline
                return null;
            }, SubmitOptions.DEFAULT.timeout(Duration.ofMillis(10)));
            SubstituteLoggingEvent event = events.poll(60, TimeUnit.SECONDS);
            logged.countDown();
            equal(Status.DEADLINE_EXCEEDED, ((DistException) thrown(CompletionException.class, late::join).getCause()).status());
            equal(Level.WARN, event.getLevel());
            check(event.getMessage().startsWith("a function has not returned on replica 0"), event.getMessage());
            check(instances.strategy() == strategy);
        }
        events.clear();
        log.call(LogLevel.ERROR, "e {}");
        log.call(LogLevel.INFO, "i");
        equal(List.of("ERROR e {}", "INFO i"),
                events.stream().map(event -> event.getLevel() + " " + event.getMessage()).toList());
    }

    private static MetricSnapshot metric(PrometheusRegistry registry, String name) {
        return registry.scrape().stream().filter(each -> each.getMetadata().getName().equals(name)).findAny().orElseThrow();
    }

    private static <T extends DataPointSnapshot> T point(List<T> points, Labels labels) {
        return points.stream().filter(point -> point.getLabels().equals(labels)).findAny().orElseThrow();
    }

    private static void prometheus() {
        StrategyCollector collector = StrategyCollector.create();
        PrometheusRegistry registry = new PrometheusRegistry();
        registry.register(collector);
        equal(0, registry.scrape().size());
        StrategyOptions options = StrategyOptions.DEFAULT.threads(ReplicaThreads.LIBRARY);
        String odd = "a \"b\"\\n\n{c}";
        try (Strategy two = Strategy.create(options.numReplicas(2)); Strategy one = Strategy.create(options.numReplicas(1))) {
            collector.add("two", two);
            collector.add(odd, one);
            for (int i = 0; i < 3; i++) {
                two.run(replica -> replica.allReduce(ReduceOp.SUM, DirectBuffers.of(1f, 2f)));
            }
            for (int i = 0; i < 5; i++) {
                one.submit(replica -> 1).join();
            }
            GaugeSnapshot replicas = (GaugeSnapshot) metric(registry, "dist_replicas");
            equal("Number of replicas of all workers.", replicas.getMetadata().getHelp());
            equal(2.0, point(replicas.getDataPoints(), Labels.of("strategy", "two")).getValue());
            equal(1.0, point(replicas.getDataPoints(), Labels.of("strategy", odd)).getValue());
            CounterSnapshot bytes = (CounterSnapshot) metric(registry, "dist_collective_bytes");
            equal(24.0, point(bytes.getDataPoints(), Labels.of("strategy", "two", "replica", "1", "collective", "all_reduce"))
                                .getValue());
            HistogramSnapshot waits = (HistogramSnapshot) metric(registry, "dist_request_wait_seconds");
            HistogramSnapshot.HistogramDataPointSnapshot wait =
                    point(waits.getDataPoints(), Labels.of("strategy", odd, "replica", "0"));
            equal(5L, wait.getCount());
            check(wait.getSum() > 0 && wait.getSum() < 60, wait.getSum());
            equal(Double.POSITIVE_INFINITY,
                    wait.getClassicBuckets().getUpperBound(wait.getClassicBuckets().size() - 1));
            InfoSnapshot info = (InfoSnapshot) metric(registry, "dist");
            equal(2, info.getDataPoints().size());
            check(info.getDataPoints().get(0).getLabels().get("version").startsWith("0."), info);
        }
    }

    private static void dropped() {
        StrategyCollector collector = StrategyCollector.create();
        try (Strategy removed = Strategy.create(1)) {
            Strategy closed = Strategy.create(1);
            collector.add("removed", removed);
            collector.add("closed", closed);
            equal(2, collector.collect().get(0).getDataPoints().size());
            closed.close();
            equal(1, collector.collect().get(0).getDataPoints().size());
            collector.remove("removed");
            equal(0, collector.collect().size());
        }
        thrown(NullPointerException.class, () -> collector.add("x", null));
        thrown(NullPointerException.class, () -> LogFunction.of(null, line -> {}, line -> {}));
    }
}
