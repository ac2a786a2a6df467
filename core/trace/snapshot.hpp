// SPDX-License-Identifier: Apache-2.0
// Snapshot: the events in a strategy's recorders at one moment, and the rounds they form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "core/trace/recorder.hpp"
#include "dist/types.h"

namespace dist {

// The part of an event that concerns other workers; see Recorder::WorkersWord.
struct OtherWorkers {
  Recorder::WorkersWord known;
  int32_t worker;   // the lowest missing worker, or the last one
  int32_t number;   // number of missing workers, or the last member's number
  int64_t late_ns;  // how long all others waited for the last
};

struct Event {
  GlobalReplica replica;  // kNoReplica: the worker itself
  int32_t collective;     // DIST_COLLECTIVE_RETURN: the replica's function
  int32_t op;
  int32_t dtype;
  int32_t group;
  int32_t members;  // of the group; 0: the replica arrived at no round
  uint32_t round;
  uint32_t sequence;  // number in the run, from 1
  uint32_t run;       // from 1
  dist_status status;
  bool asynchronous;
  bool of_workers;  // other workers take part; one of this worker's events has `others`
  OtherWorkers others;
  bool of_request;  // a request's run: dist_submit()
  int64_t request;  // its id
  int64_t accepted_ns;
  bool over;  // false: it has only begun, and arrived_ns and end_ns are the time of the snapshot
  uint64_t bytes;
  int64_t begin_ns;
  int64_t arrived_ns;  // when all members had arrived
  int64_t end_ns;
  char tag[DIST_MAX_TAG_BYTES];
};

// The member that arrived last of all.
struct Latest {
  GlobalReplica replica;  // kNoReplica: workers met, not replicas
  int32_t worker;
  int64_t late_ns;  // how long all others waited for it
};

// One collective of one group, with those of its members' events that are still in their rings, in order of
// arrival.
struct Round {
  std::span<const Event* const> events;

  bool complete() const noexcept { return events.size() == static_cast<std::size_t>(events[0]->members); }
  // Whether all members arrived and the collective succeeded for all of them.
  bool went_well() const noexcept;
  const Event& first() const noexcept { return *events.front(); }
  const Event& last() const noexcept { return *events.back(); }
  // How long all other members waited for the last one.
  int64_t late_ns() const noexcept {
    return events.size() < 2 ? 0 : last().begin_ns - events[events.size() - 2]->begin_ns;
  }
  bool of_workers() const noexcept { return first().of_workers; }
  // The information about other workers; NULL if there is none.
  const OtherWorkers* others() const noexcept;
  // The last member of all workers, as far as worker `me` knows; empty if worker `me` does not know it, or
  // not yet.
  std::optional<Latest> latest(int32_t me) const noexcept;
};

class Snapshot {
 public:
  // Throws std::bad_alloc.
  Snapshot(const FlightRecorder& recorder, Memory& memory);

  ReplicaCount replicas() const noexcept { return replicas_; }
  WorkerNumber worker() const noexcept { return worker_; }
  int64_t now_ns() const noexcept { return now_ns_; }
  // The events, ordered by replica and then by time. Those of the worker itself are at the end.
  std::span<const Event> events() const noexcept { return events_; }
  // The rounds, in no particular order.
  std::span<const Round> rounds() const noexcept { return rounds_; }

 private:
  void read(const Recorder& recorder, GlobalReplica replica, const FlightRecorder::Scale& scale);
  void join();

  const ReplicaCount replicas_;
  const WorkerNumber worker_;
  int64_t now_ns_ = 0;
  std::pmr::vector<Event> events_;
  std::pmr::vector<const Event*> by_round_;
  std::pmr::vector<Round> rounds_;
};

}  // namespace dist
