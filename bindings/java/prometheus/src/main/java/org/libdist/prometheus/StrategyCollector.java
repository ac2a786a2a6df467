// SPDX-License-Identifier: Apache-2.0

package org.libdist.prometheus;

import io.prometheus.metrics.model.registry.MultiCollector;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.libdist.DistException;
import org.libdist.Status;
import org.libdist.Strategy;

/**
 * Collects the metrics of strategies for a registry of the Prometheus Java client. All strategies of a
 * registry must be in one collector, because they have the same metrics; the label {@code strategy} tells
 * them apart. Any thread may use a collector.
 *
 * <pre>{@code
 * StrategyCollector collector = StrategyCollector.create();
 * PrometheusRegistry.defaultRegistry.register(collector);
 * collector.add("train", strategy);
 * }</pre>
 */
public final class StrategyCollector implements MultiCollector {
    private final Map<String, Strategy> strategies = new LinkedHashMap<>();

    private StrategyCollector() {}

    /** Creates a collector without strategies. */
    public static StrategyCollector create() {
        return new StrategyCollector();
    }

    /**
     * Adds a strategy, or replaces the one with the same name. The collector drops it when it is closed.
     *
     * @param name the value of the label {@code strategy}
     */
    public synchronized void add(String name, Strategy strategy) {
        strategies.put(Objects.requireNonNull(name, "name"), Objects.requireNonNull(strategy, "strategy"));
    }

    /** Removes the strategy with a name, if there is one. */
    public synchronized void remove(String name) {
        strategies.remove(Objects.requireNonNull(name, "name"));
    }

    /** Returns the metrics of all strategies. */
    @Override
    public synchronized MetricSnapshots collect() {
        Families families = new Families();
        for (Iterator<Map.Entry<String, Strategy>> all = strategies.entrySet().iterator(); all.hasNext();) {
            Map.Entry<String, Strategy> each = all.next();
            try {
                families.read(each.getValue().metricsText(each.getKey()));
            } catch (DistException e) {
                if (e.status() != Status.FAILED_PRECONDITION) {
                    throw e;
                }
                all.remove(); // it is closed
            }
        }
        return families.snapshots();
    }
}
