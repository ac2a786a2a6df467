// SPDX-License-Identifier: Apache-2.0
#include "core/trace/chrome_trace.hpp"

#include <algorithm>
#include <cstdio>

#include "core/base/status.hpp"
#include "core/base/tensor.hpp"
#include "core/trace/trace_json.hpp"

namespace dist {
namespace {

class ChromeTrace : private TraceJson {
 public:
  ChromeTrace(const Snapshot& snapshot, TextOut& out)
      : TraceJson(out),
        snapshot_(snapshot),
        // Disjoint from other workers' ids, and exact in a double.
        ids_(int64_t{snapshot.worker().me} << 40) {}

  void write(std::span<const SpanTrace> beside) {
    begin_events();
    write_names();
    for (const Event& event : snapshot_.events()) {
      if (event.members == 0) write_alone(event);
    }
    for (const Round& round : snapshot_.rounds()) {
      for (const Event* event : round.events) write_member(*event, round);
      write_arrow(round);
    }
    for (const SpanTrace& each : beside) write_spans(each, *this);
    end_events();
  }

 private:
  void write_names() {
    char label[64];
    const WorkerNumber worker = snapshot_.worker();
    std::snprintf(label, sizeof label, worker.among_others() ? "libdist worker %d" : "libdist", worker.me);
    name("process_name", snapshot_.replicas().first(), label);
    for (int r = 0; r < snapshot_.replicas().local(); ++r) {
      const GlobalReplica replica = snapshot_.replicas().global_of(LocalReplica{r});
      std::snprintf(label, sizeof label, "replica %d", dist::number(replica));
      name("thread_name", replica, label);
    }
    if (worker.among_others()) name("thread_name", kNoReplica, "outside of replicas");
  }

  // The row of a replica: a thread in the process of its worker. The worker's own row comes after those of
  // its replicas.
  int64_t row(GlobalReplica replica) const {
    return replica == kNoReplica ? snapshot_.replicas().global() : dist::number(replica);
  }
  void name(const char* what, GlobalReplica replica, const char* value) {
    TraceJson::name(what, snapshot_.worker().me, row(replica), value);
  }

  // Writes the beginning of an event; `phase` is the format's letter.
  void begin(const char* phase, const char* category, const char* title, GlobalReplica replica,
             int64_t at_ns) {
    TraceJson::begin();
    text("ph", phase);
    text("cat", category);
    text("name", title);
    place(snapshot_.worker().me, row(replica));
    time("ts", at_ns);
  }
  // Writes a slice, which may be incomplete. Asynchronous slices overlap, so they have rows of their own.
  void begin_slice(const char* category, const char* title, const Event& event) {
    begin(event.asynchronous ? "b" : event.over ? "X" : "B", category, title, event.replica, event.begin_ns);
    if (event.asynchronous) {
      number("id", ++ids_);
    } else if (event.over) {
      time("dur", event.end_ns - event.begin_ns);
    }
    TraceJson::begin("args");
    if (event.over) text("status", status_name(event.status));
  }
  void end_slice(const char* category, const char* title, const Event& event) {
    end();
    end();
    if (!event.asynchronous || !event.over) return;
    begin("e", category, title, event.replica, event.end_ns);
    number("id", ids_);
    end();
  }

  // Writes a run of the replica's function, or a call that was rejected before it arrived at a round.
  void write_alone(const Event& event) {
    const bool run = event.collective == DIST_COLLECTIVE_RETURN;
    const char* title = event.of_request ? "request" : run ? "run" : collective_name(event.collective);
    const char* category = run ? title : "collective";
    begin_slice(category, title, event);
    if (run && event.run != 0) number("run", event.run);
    if (event.of_request) {
      number("request", event.request);
      number("queued_ns", event.begin_ns - event.accepted_ns);
    }
    end_slice(category, title, event);
    if (event.of_request) write_queued(event);
  }

  // Writes the time that a request was queued. The replica ran other requests meanwhile, so it has a row of
  // its own.
  void write_queued(const Event& event) {
    const int64_t id = ++ids_;
    const auto end_of_queue = [&](const char* phase, int64_t at_ns) {
      begin(phase, "queue", "queued", event.replica, at_ns);
      number("id", id);
      TraceJson::begin("args");
      number("request", event.request);
      end();
      end();
    };
    end_of_queue("b", event.accepted_ns);
    end_of_queue("e", event.begin_ns);
  }

  void write_member(const Event& event, const Round& round) {
    const char* title = collective_name(event.collective);
    begin_slice("collective", title, event);
    if (event.run != 0) number("run", event.run);
    number("sequence", event.sequence);
    if (event.group >= 0) number("group", event.group);
    if (event.op != 0) text("op", op_name(static_cast<dist_reduce_op>(event.op)));
    if (event.dtype != 0) text("dtype", dtype_name(static_cast<dist_dtype>(event.dtype)));
    number("bytes", static_cast<int64_t>(event.bytes));
    if (event.tag[0] != '\0') text("tag", event.tag);
    if (!event.asynchronous) number("waited_ns", event.arrived_ns - event.begin_ns);
    if (const auto latest = round.latest(snapshot_.worker().me)) {
      if (latest->replica != kNoReplica) number("last", dist::number(latest->replica));
      if (snapshot_.worker().among_others()) number("last_worker", latest->worker);
      number("late_ns", latest->late_ns);
    } else if (!event.over) {
      write_absent(event, round);
    }
    end_slice("collective", title, event);
    const bool alone = event.members == 1 && !event.of_workers;
    const bool waited = event.over && event.arrived_ns > event.begin_ns && !alone;
    if (waited && !event.asynchronous) write_wait(event);
  }

  // Writes the members that a replica is waiting for, either of its own worker or of other workers.
  void write_absent(const Event& event, const Round& round) {
    if (round.complete()) {
      const OtherWorkers* const others = round.others();
      if (others == nullptr || others->number <= 0) return;
      number("missing_workers", others->number);
      return number("waits_for_worker", others->worker);
    }
    number("missing", event.members - static_cast<int64_t>(round.events.size()));
    // The members of other groups are not recorded.
    if (event.group != 0) return;
    begin_list("waits_for");
    for (int r = 0; r < snapshot_.replicas().local(); ++r) {
      const GlobalReplica replica = snapshot_.replicas().global_of(LocalReplica{r});
      const bool here = std::any_of(round.events.begin(), round.events.end(),
                                    [&](const Event* e) { return e->replica == replica; });
      if (!here) item(dist::number(replica));
    }
    end_list();
  }

  void write_wait(const Event& event) {
    begin("X", "wait", "wait", event.replica, event.begin_ns);
    time("dur", event.arrived_ns - event.begin_ns);
    end();
  }

  void write_arrow(const Round& round) {
    if (!round.went_well() || round.events.size() < 2 || round.last().asynchronous) return;
    // An arrow can only point to events of this process.
    const auto latest = round.latest(snapshot_.worker().me);
    if (!latest || latest->replica != round.last().replica) return;
    ++ids_;
    begin("s", "last", "last to arrive", round.last().replica, round.last().begin_ns);
    number("id", ids_);
    end();
    // An arrow ends in the slice at its time, which is the first member's own.
    const Event& first = round.first();
    begin("f", "last", "last to arrive", first.replica, std::max(first.begin_ns, first.arrived_ns - 1));
    text("bp", "e");
    number("id", ids_);
    end();
  }

  const Snapshot& snapshot_;
  int64_t ids_;
};

}  // namespace

void write_chrome_trace(const Snapshot& snapshot, std::span<const SpanTrace> beside, TextOut& out) {
  ChromeTrace(snapshot, out).write(beside);
}

}  // namespace dist
