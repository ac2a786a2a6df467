// SPDX-License-Identifier: Apache-2.0
// Replica: the only object that the host's function sees. A logical device is one too, of a group of its own:
// part of a replica (device_team.hpp).
#pragma once

#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/group.hpp"
#include "core/cross_device/arena.hpp"
#include "core/cross_device/collectives.hpp"
#include "core/cross_device/work.hpp"
#include "core/trace/recorder.hpp"
#include "core/value/value.hpp"

namespace dist {

class ReplicaPool;

class Replica {
 public:
  // `threads`: this replica's share of the cores, for its own loops. `part_of`: the replica that it is a
  // logical device of; -1: it is a replica.
  Replica(Memory& memory, ReplicaPool& pool, Group& group, Recorder& recorder, int id, int part_of,
          int threads, std::size_t cache_bytes) noexcept
      : pool_(pool),
        group_(group),
        recorder_(recorder),
        arena_(memory, threads),
        cache_bytes_(cache_bytes),
        id_(id),
        part_of_(part_of) {}
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  int id() const noexcept { return id_; }
  bool is_device() const noexcept { return part_of_ >= 0; }
  // Whose components of values and copies of variables it sees: a logical device those of its replica.
  int copy() const noexcept { return is_device() ? part_of_ : id_; }
  int num_replicas() const noexcept { return group_.size(); }
  ReplicaPool& pool() const noexcept { return pool_; }
  Group& group() const noexcept { return group_; }
  Recorder& recorder() const noexcept { return recorder_; }
  Arena& arena() noexcept { return arena_; }

  // Where the thread of its function is instead, so that its handle is not to be used.
  enum class Away : uint8_t { kNo, kMerging, kOnDevices };

  // OK while its function runs, and neither a merge function nor one on its devices does.
  Status check(const char* call) const noexcept {
    if (inside_ && away_ == Away::kNo) [[likely]]
      return kOk;
    return not_now(call);
  }
  // And it is no logical device, which has no copies of its own, nor says what is common to all replicas.
  Status check_whole(const char* call) const noexcept {
    DIST_TRY(check(call));
    return is_device() ? is_a_part(call) : kOk;
  }
  Caller caller(const char* tag, int64_t timeout_ns) noexcept {
    return {group_, id_, tag, timeout_ns, cache_bytes_, &recorder_, &checked_};
  }
  // As a member of a group of some replicas.
  Caller caller(Group& group, int rank, const char* tag, int64_t timeout_ns) noexcept {
    return {group, rank, tag, timeout_ns, cache_bytes_, &recorder_, &checked_};
  }

  // What it has under way.
  WorkList& works() noexcept { return works_; }

  void begin() noexcept {
    inside_ = true;
    recorder_.begin_run();
  }
  void end() noexcept { inside_ = false; }
  void set_away(Away away) noexcept { away_ = away; }

 private:
  Status not_now(const char* call) const noexcept;
  Status is_a_part(const char* call) const noexcept;

  ReplicaPool& pool_;
  Group& group_;
  Recorder& recorder_;
  Arena arena_;
  WorkList works_;
  CheckedCalls checked_;
  const std::size_t cache_bytes_;
  const int id_;
  const int part_of_;
  bool inside_ = false;
  Away away_ = Away::kNo;
};

}  // namespace dist
