// SPDX-License-Identifier: Apache-2.0
#include "core/serve/write_metrics.hpp"

#include <algorithm>
#include <cstdio>

#include "core/base/text.hpp"
#include "core/serve/batcher.hpp"
#include "core/trace/exposition.hpp"

namespace dist {
namespace {

constexpr const char* kEndNames[kRequestEnds] = {"completed", "failed", "cancelled", "overdue"};
constexpr const char* kRefusalNames[kRefusals] = {"full", "closed", "cancelled", "other"};

// Upper bounds of the histogram: 1 us, 2 us, ..., 16.8 s.
constexpr int kBounds = 25;
constexpr uint64_t bound_ns(int bound) noexcept { return uint64_t{1000} << bound; }

class ServeMetrics : private Exposition {
 public:
  ServeMetrics(Instances& instances, const FlightRecorder& recorder, const char* strategy,
               TextOut& out) noexcept
      : Exposition(strategy, out), instances_(instances), recorder_(recorder) {}

  void write_requests() {
    const Instances::Counts now = instances_.counts();
    single("dist_requests_queued", "gauge", "Requests that wait for an instance.", now.queued);
    single("dist_requests_running", "gauge", "Requests whose functions are running.", now.running);
    single("dist_requests_accepted_total", "counter", "Requests that were accepted.", now.accepted);
    family("dist_requests_refused_total", "counter", "Requests that were refused, by reason.");
    for (int i = 0; i < kRefusals; ++i)
      one("dist_requests_refused_total", "reason", kRefusalNames[i], now.refused[i]);
    family("dist_requests_ended_total", "counter", "Requests that have completed, by outcome.");
    for (int i = 0; i < kRequestEnds; ++i)
      one("dist_requests_ended_total", "end", kEndNames[i], now.ended[i]);
    single("dist_instances_replaced_total", "counter",
           "Threads that replaced a thread whose function was stuck.", now.replaced);
    single("dist_instances_stuck", "gauge", "Stuck functions that have not returned yet.", now.stuck);
    histogram("dist_request_queue_seconds", "Time from submission until an instance started the request.",
              &RequestNumbers::queued);
    histogram("dist_request_compute_seconds", "Time that the request's function took.",
              &RequestNumbers::computed);
    histogram("dist_request_wait_seconds", "Time from submission until the request's function returned.",
              &RequestNumbers::waited);
  }

  void write_items() {
    if (!instances_.batchers().at(0)) return;
    items("dist_items_waiting", "gauge", "Items that wait for their first step.",
          [](Batcher& of) { return count(of).waiting; });
    items("dist_items_active", "gauge", "Items that instances are processing.",
          [](Batcher& of) { return count(of).active; });
    items("dist_items_accepted_total", "counter", "Items that were accepted.",
          [](Batcher& of) { return of.numbers().accepted.get(); });
    items("dist_items_refused_total", "counter", "Items that were refused, by reason.", "reason",
          kRefusalNames,
          [](Batcher& of, int i) { return of.numbers().refused[i].load(std::memory_order_relaxed); });
    items("dist_items_ended_total", "counter", "Items that have completed, by outcome.", "end", kEndNames,
          [](Batcher& of, int i) { return of.numbers().ended[i].get(); });
    histogram("dist_item_queue_seconds", "Time from submission until the item's first step.",
              &ItemNumbers::queued);
    histogram("dist_item_wait_seconds", "Time from submission until the item completed.",
              &ItemNumbers::waited);
    histogram("dist_batch_compute_seconds", "Time that the step function took.", &ItemNumbers::computed);
    family("dist_batch_items", "histogram", "Number of items in a step.");
    for_each_batcher([&](Batcher& of) { sizes("dist_batch_items", of); });
  }

 private:
  void one(const char* name, const char* what, const char* which, uint64_t number) {
    sample(name);
    label(what, which);
    value(number);
  }

  struct Waiting {
    uint64_t waiting;
    uint64_t active;
  };
  static Waiting count(Batcher& of) {
    int64_t waiting = 0;
    int64_t active = 0;
    of.count(&waiting, &active);
    return {static_cast<uint64_t>(waiting), static_cast<uint64_t>(active)};
  }

  template <class Each>
  void for_each_batcher(Each&& each) {
    for (std::size_t i = 0;; ++i) {
      const Ref<Batcher> of = instances_.batchers().at(i);
      if (!of) return;
      each(*of);
    }
  }

  template <class Number>
  void items(const char* name, const char* type, const char* help, Number&& number) {
    family(name, type, help);
    for_each_batcher([&](Batcher& of) {
      sample(name);
      label("batcher", of.number);
      value(number(of));
    });
  }

  template <int N, class Number>
  void items(const char* name, const char* type, const char* help, const char* what,
             const char* const (&which)[N], Number&& number) {
    family(name, type, help);
    for_each_batcher([&](Batcher& of) {
      for (int i = 0; i < N; ++i) {
        sample(name);
        label("batcher", of.number);
        label(what, which[i]);
        value(number(of, i));
      }
    });
  }

  void histogram(const char* name, const char* help, const Histogram RequestNumbers::*which) {
    family(name, "histogram", help);
    for (const Instance& each : instances_.dispatcher().instances())
      times({name, "replica", instances_.pool().name_of(each.rank)}, each.numbers.*which);
  }

  void histogram(const char* name, const char* help, const Histogram ItemNumbers::*which) {
    family(name, "histogram", help);
    for_each_batcher([&](Batcher& of) { times({name, "batcher", of.number}, of.numbers().*which); });
  }

  struct Series {
    const char* name;
    const char* of;  // the label
    int which;
  };
  void begin(const Series& series, const char* suffix) {
    char whole[64];
    std::snprintf(whole, sizeof whole, "%s_%s", series.name, suffix);
    sample(whole);
    label(series.of, series.which);
  }
  void bucket(const Series& series, const char* bound, uint64_t number) {
    begin(series, "bucket");
    label("le", bound);
    value(number);
  }

  // Buckets are cumulative.
  void sizes(const char* name, const Batcher& of) {
    const Series series{name, "batcher", of.number};
    uint64_t all = 0;
    for (int i = 0; i < StepSizes::kBounds; ++i) {
      all += of.numbers().sizes.count(i);
      char text[32];
      std::snprintf(text, sizeof text, "%zu", StepSizes::bound(i));
      bucket(series, text, all);
    }
    bucket(series, "+Inf", all);
    begin(series, "sum");
    value(of.numbers().sizes.sum());
    begin(series, "count");
    value(all);
  }

  void times(const Series& series, const Histogram& from) {
    uint64_t counts[kBounds + 1] = {};
    int bound = 0;
    for (int i = 0; i < Histogram::kBuckets; ++i) {
      const uint64_t most_ns = recorder_.sum_ns(Histogram::begin_of(i + 1) - 1);
      while (bound < kBounds && bound_ns(bound) < most_ns) ++bound;
      counts[bound] += from.count(i);
    }
    uint64_t all = 0;
    for (int i = 0; i <= kBounds; ++i) {
      all += counts[i];
      char text[32] = "+Inf";
      if (i < kBounds) std::snprintf(text, sizeof text, "%.6f", static_cast<double>(bound_ns(i)) * 1e-9);
      bucket(series, text, all);
    }
    begin(series, "sum");
    seconds(recorder_.sum_ns(from.sum()));
    begin(series, "count");
    value(all);
  }

  Instances& instances_;
  const FlightRecorder& recorder_;
};

}  // namespace

void explain(Instances& instances, TextOut& out) {
  const Instances::Counts now = instances.counts();
  const InstancesOptions options = instances.options();
  out.add("  instances: %d, %s\n", instances.pool().num_replicas(), instances.lifecycle().name());
  out.add("  requests: %llu running, %llu queued (at most %zu)\n",
          static_cast<unsigned long long>(now.running), static_cast<unsigned long long>(now.queued),
          options.max_queued);
  if (options.spin_ns > 0) {
    out.add("  idle instances: spin for %s, then sleep\n", DurationText(options.spin_ns).text);
  } else {
    out.put("  idle instances: sleep immediately\n");
  }
  if (options.stuck_ns == 0) {
    out.put("  stuck functions: keep their replica until they return\n");
  } else {
    out.add(
        "  stuck functions: a function that runs for %s after its deadline or cancellation loses its replica "
        "to a new thread; %llu replaced (at most %d), of which %llu are still running\n",
        DurationText(options.stuck_ns).text, static_cast<unsigned long long>(now.replaced),
        options.max_replaced, static_cast<unsigned long long>(now.stuck));
  }
}

void write_metrics(Instances& instances, const FlightRecorder& recorder, const char* strategy, TextOut& out) {
  ServeMetrics metrics(instances, recorder, strategy, out);
  metrics.write_requests();
  metrics.write_items();
}

}  // namespace dist
