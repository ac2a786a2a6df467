// SPDX-License-Identifier: Apache-2.0

package org.libdist.prometheus;

import io.prometheus.metrics.model.snapshots.ClassicHistogramBuckets;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import io.prometheus.metrics.model.snapshots.InfoSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Metrics in Prometheus' text format, as libdist writes them, read into the client's objects. */
final class Families {
    private static final Pattern SAMPLE = Pattern.compile("(\\w+)(?:\\{(.*)\\})? (\\S+)");
    private static final Pattern LABEL = Pattern.compile("(\\w+)=\"((?:[^\"\\\\]|\\\\.)*)\",?");
    private static final Pattern ESCAPE = Pattern.compile("\\\\(.)");

    /** The samples of one metric: a value by suffix and labels. */
    private static final class Family {
        final String type;
        final String help;
        final Map<Labels, Double> values = new LinkedHashMap<>(); // of a histogram: the sums
        final Map<Labels, Map<Double, Long>> buckets = new LinkedHashMap<>(); // cumulative counts by upper bound

        Family(String type, String help) {
            this.type = type;
            this.help = help;
        }
    }

    private final Map<String, Family> families = new LinkedHashMap<>();

    /** Adds the metrics of one strategy. */
    void read(String text) {
        String help = "";
        String name = "";
        for (String line : text.split("\n")) {
            String[] words = line.split(" ", 4);
            if (line.startsWith("# HELP ")) {
                help = unescaped(words[3]);
            } else if (line.startsWith("# TYPE ")) {
                name = words[2];
                families.putIfAbsent(name, new Family(words[3], help));
            } else {
                add(families.get(name), name, line);
            }
        }
    }

    private static void add(Family family, String name, String line) {
        Matcher sample = SAMPLE.matcher(line);
        if (!sample.matches()) {
            throw new IllegalArgumentException("not a sample: " + line);
        }
        Labels labels = Labels.EMPTY;
        double bound = Double.NaN;
        for (Matcher label = LABEL.matcher(sample.group(2) == null ? "" : sample.group(2)); label.find();) {
            if (label.group(1).equals("le")) {
                bound = number(label.group(2));
            } else {
                labels = labels.add(label.group(1), unescaped(label.group(2)));
            }
        }
        double value = number(sample.group(3));
        switch (sample.group(1).substring(name.length())) {
            case "", "_sum" -> family.values.put(labels, value);
            case "_bucket" -> family.buckets.computeIfAbsent(labels, key -> new LinkedHashMap<>())
                                      .put(bound, (long) value);
            default -> {} // _count: the last bucket has it
        }
    }

    private static double number(String text) {
        return text.equals("+Inf") ? Double.POSITIVE_INFINITY : Double.parseDouble(text);
    }

    private static String unescaped(String text) {
        return ESCAPE.matcher(text).replaceAll(
                found -> found.group(1).equals("n") ? "\n" : Matcher.quoteReplacement(found.group(1)));
    }

    MetricSnapshots snapshots() {
        MetricSnapshots.Builder all = MetricSnapshots.builder();
        families.forEach((name, family) -> all.metricSnapshot(snapshot(name, family)));
        return all.build();
    }

    private static MetricSnapshot snapshot(String name, Family family) {
        switch (family.type) {
            case "counter": {
                CounterSnapshot.Builder made = CounterSnapshot.builder();
                family.values.forEach((labels, value) -> made.dataPoint(
                        CounterSnapshot.CounterDataPointSnapshot.builder().labels(labels).value(value).build()));
                return made.name(name.replaceAll("_total$", "")).help(family.help).build();
            }
            case "histogram": {
                HistogramSnapshot.Builder made = HistogramSnapshot.builder();
                family.values.forEach((labels, sum) -> made.dataPoint(
                        HistogramSnapshot.HistogramDataPointSnapshot.builder().labels(labels).sum(sum)
                                .classicHistogramBuckets(buckets(family.buckets.get(labels))).build()));
                return made.name(name).help(family.help).build();
            }
            default:
                if (name.endsWith("_info")) { // the client has a type of its own for these
                    InfoSnapshot.Builder made = InfoSnapshot.builder();
                    family.values.forEach((labels, value) -> made.dataPoint(
                            InfoSnapshot.InfoDataPointSnapshot.builder().labels(labels).build()));
                    return made.name(name.replaceAll("_info$", "")).help(family.help).build();
                }
                GaugeSnapshot.Builder made = GaugeSnapshot.builder();
                family.values.forEach((labels, value) -> made.dataPoint(
                        GaugeSnapshot.GaugeDataPointSnapshot.builder().labels(labels).value(value).build()));
                return made.name(name).help(family.help).build();
        }
    }

    private static ClassicHistogramBuckets buckets(Map<Double, Long> cumulative) {
        ClassicHistogramBuckets.Builder made = ClassicHistogramBuckets.builder();
        long before = 0;
        for (Map.Entry<Double, Long> bucket : cumulative.entrySet()) {
            made.bucket(bucket.getKey(), bucket.getValue() - before);
            before = bucket.getValue();
        }
        return made.build();
    }
}
