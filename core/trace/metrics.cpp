// SPDX-License-Identifier: Apache-2.0
#include "core/trace/metrics.hpp"

#include <cinttypes>

#include "core/base/collective_traits.hpp"
#include "core/base/status.hpp"
#include "core/base/text.hpp"

namespace dist {
namespace {

class Metrics {
 public:
  Metrics(const FlightRecorder& recorder, const Gauges& gauges, TextOut& out) noexcept
      : recorder_(recorder), gauges_(gauges), out_(out) {}

  void write() {
    family("dist_info", "gauge", "The library: always 1.");
    sample("dist_info");
    label("version", gauges_.version);
    label("simd", gauges_.simd);
    value(1);
    family("dist_replicas", "gauge", "Replicas in sync, of all workers.");
    sample("dist_replicas");
    value(static_cast<uint64_t>(recorder_.replicas().global()));
    family("dist_memory_held_bytes", "gauge",
           "Memory that the strategy and its objects hold from its allocator.");
    sample("dist_memory_held_bytes");
    value(gauges_.memory_held);

    family("dist_runs_total", "counter", "Runs of the replica's function that are over.");
    each([&](LocalReplica r) { one("dist_runs_total", r, recorder_[r].runs().get()); });
    family("dist_run_seconds_total", "counter", "Time inside the replica's function, of runs that are over.");
    each([&](LocalReplica r) { seconds("dist_run_seconds_total", r, recorder_[r].run_ticks().get()); });
    family("dist_run_errors_total", "counter", "Runs that the replica's function ended with an error.");
    each([&](LocalReplica r) { errors("dist_run_errors_total", r, &Recorder::run_errors); });
    family("dist_collectives_total", "counter", "Collectives that the replica came to.");
    each([&](LocalReplica r) { kinds("dist_collectives_total", r, &Recorder::Kind::calls); });
    family("dist_collective_bytes_total", "counter",
           "Bytes of the tensors that the replica brought, or got.");
    each([&](LocalReplica r) { kinds("dist_collective_bytes_total", r, &Recorder::Kind::bytes); });
    family("dist_collective_errors_total", "counter",
           "Collectives that ended with an error, refused ones included.");
    each([&](LocalReplica r) { errors("dist_collective_errors_total", r, &Recorder::errors); });
    family("dist_collective_wait_seconds_total", "counter",
           "Time from the replica's call until all had come, of blocking collectives.");
    each([&](LocalReplica r) {
      seconds("dist_collective_wait_seconds_total", r, recorder_[r].waited().get());
    });
  }

 private:
  void family(const char* name, const char* type, const char* help) {
    out_.add("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
  }
  template <class Body>
  void each(Body&& body) const {
    for (int r = 0; r < recorder_.replicas().local(); ++r) body(LocalReplica{r});
  }

  // A sample: its name, its labels, its value.
  void sample(const char* name) {
    out_.put(name);
    labels_ = 0;
    if (gauges_.strategy != nullptr) label("strategy", gauges_.strategy);
    if (!recorder_.worker().among_others()) return;
    begin_label("worker");
    out_.add("%d\"", recorder_.worker().me);
  }
  void sample(const char* name, LocalReplica replica) {
    sample(name);
    begin_label("replica");
    out_.add("%d\"", number(recorder_.replicas().global_of(replica)));
  }
  void begin_label(const char* name) {
    out_.put(labels_++ == 0 ? "{" : ",");
    out_.put(name);
    out_.put("=\"");
  }
  void label(const char* name, const char* text) {
    begin_label(name);
    while (*text != '\0') {
      char shown[kShownRoom];
      text += show_character(text, Breaks::kKept, shown);
      for (const char* c = shown; *c != '\0'; ++c) put_escaped(*c);
    }
    out_.Put('"');
  }
  void put_escaped(char c) {
    if (c == '\n') return out_.put("\\n");
    if (c == '\\' || c == '"') out_.Put('\\');
    out_.Put(c);
  }
  void end_labels() {
    if (labels_ != 0) out_.Put('}');
  }
  void value(uint64_t number) {
    end_labels();
    out_.add(" %" PRIu64 "\n", number);
  }

  void one(const char* name, LocalReplica replica, uint64_t number) {
    sample(name, replica);
    value(number);
  }
  void seconds(const char* name, LocalReplica replica, uint64_t ticks) {
    sample(name, replica);
    end_labels();
    const uint64_t ns = recorder_.sum_ns(ticks);
    out_.add(" %" PRIu64 ".%09" PRIu64 "\n", ns / 1'000'000'000, ns % 1'000'000'000);
  }
  // Of each status but OK that came up.
  void errors(const char* name, LocalReplica replica, const Sum& (Recorder::*sum)(int) const noexcept) {
    for (int status = 1; status < kStatuses; ++status) {
      const uint64_t count = (recorder_[replica].*sum)(status).get();
      if (count == 0) continue;
      sample(name, replica);
      label("status", status_name(status));
      value(count);
    }
  }
  // Of each collective that was called.
  static_assert(kLastCollective < kCollectives);
  void kinds(const char* name, LocalReplica replica, const Sum Recorder::Kind::*sum) {
    for (int collective = 1; collective < kCollectives; ++collective) {
      const Recorder::Kind& kind = recorder_[replica].kind(collective);
      if (kind.calls.get() == 0) continue;
      sample(name, replica);
      label("collective", collective_name(collective));
      value((kind.*sum).get());
    }
  }

  const FlightRecorder& recorder_;
  const Gauges& gauges_;
  TextOut& out_;
  int labels_ = 0;
};

}  // namespace

void write_metrics(const FlightRecorder& recorder, const Gauges& gauges, TextOut& out) {
  Metrics(recorder, gauges, out).write();
}

}  // namespace dist
