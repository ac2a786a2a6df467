// SPDX-License-Identifier: Apache-2.0
#include "core/trace/metrics.hpp"

#include "core/base/collective_traits.hpp"
#include "core/base/status.hpp"
#include "core/trace/exposition.hpp"

namespace dist {
namespace {

class Metrics : private Exposition {
 public:
  Metrics(const FlightRecorder& recorder, const Gauges& gauges, TextOut& out) noexcept
      : Exposition(gauges.strategy, out), recorder_(recorder), gauges_(gauges) {}

  void write() {
    family("dist_info", "gauge", "Version and SIMD target of libdist; the value is always 1.");
    sample("dist_info");
    label("version", gauges_.version);
    label("simd", gauges_.simd);
    value(1);
    family("dist_replicas", "gauge", "Number of replicas of all workers.");
    sample("dist_replicas");
    value(static_cast<uint64_t>(recorder_.replicas().global()));
    family("dist_memory_held_bytes", "gauge",
           "Memory that the strategy and its objects hold from its allocator.");
    sample("dist_memory_held_bytes");
    value(gauges_.memory_held);

    family("dist_runs_total", "counter", "Completed runs of the replica's function.");
    each([&](LocalReplica r) { one("dist_runs_total", r, recorder_[r].runs().get()); });
    family("dist_run_seconds_total", "counter", "Time that completed runs spent in the replica's function.");
    each([&](LocalReplica r) { seconds("dist_run_seconds_total", r, recorder_[r].run_ticks().get()); });
    family("dist_run_errors_total", "counter", "Runs in which the replica's function failed.");
    each([&](LocalReplica r) { errors("dist_run_errors_total", r, &Recorder::run_errors); });
    family("dist_collectives_total", "counter", "Collectives that the replica called.");
    each([&](LocalReplica r) { kinds("dist_collectives_total", r, &Recorder::Kind::calls); });
    family("dist_collective_bytes_total", "counter",
           "Bytes of the tensors that the replica passed to collectives or received from them.");
    each([&](LocalReplica r) { kinds("dist_collective_bytes_total", r, &Recorder::Kind::bytes); });
    family("dist_collective_errors_total", "counter", "Collectives that failed, including refused calls.");
    each([&](LocalReplica r) { errors("dist_collective_errors_total", r, &Recorder::errors); });
    family("dist_collective_wait_seconds_total", "counter",
           "Time from the replica's call until all replicas had arrived, in blocking collectives.");
    each([&](LocalReplica r) {
      seconds("dist_collective_wait_seconds_total", r, recorder_[r].waited().get());
    });
  }

 private:
  template <class Body>
  void each(Body&& body) const {
    for (int r = 0; r < recorder_.replicas().local(); ++r) body(LocalReplica{r});
  }

  void sample(const char* name) {
    Exposition::sample(name);
    if (recorder_.worker().among_others()) label("worker", recorder_.worker().me);
  }
  void sample(const char* name, LocalReplica replica) {
    sample(name);
    label("replica", number(recorder_.replicas().global_of(replica)));
  }

  void one(const char* name, LocalReplica replica, uint64_t number) {
    sample(name, replica);
    value(number);
  }
  void seconds(const char* name, LocalReplica replica, uint64_t ticks) {
    sample(name, replica);
    Exposition::seconds(recorder_.sum_ns(ticks));
  }
  // Writes one sample for each status except OK that has occurred.
  void errors(const char* name, LocalReplica replica, const Sum& (Recorder::*sum)(int) const noexcept) {
    for (int status = 1; status < kStatuses; ++status) {
      const uint64_t count = (recorder_[replica].*sum)(status).get();
      if (count == 0) continue;
      sample(name, replica);
      label("status", status_name(status));
      value(count);
    }
  }
  // Writes one sample for each collective that has been called.
  static_assert(index_of(kLastCollective) < kCollectives);
  void kinds(const char* name, LocalReplica replica, const Sum Recorder::Kind::*sum) {
    for (std::size_t i = 1; i <= index_of(kLastCollective); ++i) {
      const auto collective = static_cast<int32_t>(collective_at(i));
      const Recorder::Kind& kind = recorder_[replica].kind(collective);
      if (kind.calls.get() == 0) continue;
      sample(name, replica);
      label("collective", collective_name(collective));
      value((kind.*sum).get());
    }
  }

  const FlightRecorder& recorder_;
  const Gauges& gauges_;
};

}  // namespace

void write_metrics(const FlightRecorder& recorder, const Gauges& gauges, TextOut& out) {
  Metrics(recorder, gauges, out).write();
}

}  // namespace dist
