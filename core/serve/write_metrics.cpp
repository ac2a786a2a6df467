// SPDX-License-Identifier: Apache-2.0
#include "core/serve/write_metrics.hpp"

#include <algorithm>
#include <cstdio>

#include "core/base/text.hpp"
#include "core/trace/exposition.hpp"

namespace dist {
namespace {

constexpr const char* kEndNames[kRequestEnds] = {"completed", "failed", "cancelled", "overdue"};
constexpr const char* kRefusalNames[kRefusals] = {"full", "closed", "cancelled", "other"};

// Upper bounds of what is shown: 1 us, 2 us, ..., 16.8 s.
constexpr int kBounds = 25;
constexpr uint64_t bound_ns(int bound) noexcept { return uint64_t{1000} << bound; }

class RequestMetrics : private Exposition {
 public:
  RequestMetrics(const Instances& instances, const FlightRecorder& recorder, const char* strategy,
                 TextOut& out) noexcept
      : Exposition(strategy, out), instances_(instances), recorder_(recorder) {}

  void write() {
    const Instances::Counts now = instances_.counts();
    single("dist_requests_queued", "gauge", "Requests that no instance has begun.", now.queued);
    single("dist_requests_running", "gauge", "Requests whose functions run.", now.running);
    single("dist_requests_accepted_total", "counter", "Requests that dist_submit() accepted.", now.accepted);
    family("dist_requests_refused_total", "counter", "Requests that dist_submit() refused, and why.");
    for (int i = 0; i < kRefusals; ++i)
      one("dist_requests_refused_total", "reason", kRefusalNames[i], now.refused[i]);
    family("dist_requests_ended_total", "counter", "Requests that have ended, and how.");
    for (int i = 0; i < kRequestEnds; ++i)
      one("dist_requests_ended_total", "end", kEndNames[i], now.ended[i]);
    single("dist_instances_replaced_total", "counter",
           "Threads that took the place of one whose function was stuck.", now.replaced);
    single("dist_instances_stuck", "gauge", "Stuck functions that have not returned since.", now.stuck);
    histogram("dist_request_queue_seconds", "Time from dist_submit() until an instance began the request.",
              &RequestNumbers::queued);
    histogram("dist_request_compute_seconds", "Time inside the request's function.",
              &RequestNumbers::computed);
    histogram("dist_request_wait_seconds",
              "Time from dist_submit() until the request's function had returned.", &RequestNumbers::waited);
  }

 private:
  void one(const char* name, const char* what, const char* which, uint64_t number) {
    sample(name);
    label(what, which);
    value(number);
  }

  void histogram(const char* name, const char* help, const Histogram RequestNumbers::*which) {
    family(name, "histogram", help);
    for (int rank = 0; rank < instances_.num_instances(); ++rank)
      of_instance(name, rank, instances_.numbers(rank).*which);
  }

  void begin(const char* name, const char* suffix, int rank) {
    char whole[64];
    std::snprintf(whole, sizeof whole, "%s_%s", name, suffix);
    sample(whole);
    label("replica", instances_.name_of(rank));
  }

  // Each bucket has those below it too.
  void of_instance(const char* name, int rank, const Histogram& from) {
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
      begin(name, "bucket", rank);
      label("le", text);
      value(all);
    }
    begin(name, "sum", rank);
    seconds(recorder_.sum_ns(from.sum()));
    begin(name, "count", rank);
    value(all);
  }

  const Instances& instances_;
  const FlightRecorder& recorder_;
};

}  // namespace

void explain(Instances& instances, TextOut& out) {
  const Instances::Counts now = instances.counts();
  const Instances::Options options = instances.options();
  out.add("instances: %d %s; %llu requests queued of at most %zu, %llu running; ", instances.num_instances(),
          instances.phase_name(), static_cast<unsigned long long>(now.queued), options.max_queued,
          static_cast<unsigned long long>(now.running));
  if (options.spin_ns > 0) {
    out.add("a free one looks for requests for %s before it sleeps; ", DurationText(options.spin_ns).text);
  } else {
    out.put("a free one sleeps at once; ");
  }
  if (options.stuck_ns == 0) {
    out.put("a function that is stuck is waited for\n");
  } else {
    out.add(
        "a function that is stuck for %s is left alone, and its replica gets another thread, at most %d "
        "times: %llu so far",
        DurationText(options.stuck_ns).text, options.max_replaced,
        static_cast<unsigned long long>(now.replaced));
    out.add(", of which %llu still inside\n", static_cast<unsigned long long>(now.stuck));
  }
}

void write_metrics(const Instances& instances, const FlightRecorder& recorder, const char* strategy,
                   TextOut& out) {
  RequestMetrics(instances, recorder, strategy, out).write();
}

}  // namespace dist
