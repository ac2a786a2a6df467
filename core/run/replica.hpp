// SPDX-License-Identifier: Apache-2.0
// Replica: the only object that the host's function sees.
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
  // `threads`: this replica's share of the cores, for its own loops.
  Replica(Memory& memory, ReplicaPool& pool, Group& group, Recorder& recorder, int id, int threads,
          std::size_t cache_bytes) noexcept
      : pool_(pool),
        group_(group),
        recorder_(recorder),
        arena_(memory, threads),
        cache_bytes_(cache_bytes),
        id_(id) {}
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  int id() const noexcept { return id_; }
  int num_replicas() const noexcept { return group_.size(); }
  ReplicaPool& pool() const noexcept { return pool_; }
  Group& group() const noexcept { return group_; }
  Recorder& recorder() const noexcept { return recorder_; }
  Arena& arena() noexcept { return arena_; }

  // OK while its function runs, and no merge function does.
  Status check(const char* call) const noexcept {
    if (inside_ && !merging_) [[likely]]
      return kOk;
    return not_now(call);
  }
  Caller caller(const char* tag, int64_t timeout_ns) noexcept {
    return {group_, id_, tag, timeout_ns, cache_bytes_, &recorder_};
  }
  // As a member of a group of some replicas.
  Caller caller(Group& group, int rank, const char* tag, int64_t timeout_ns) const noexcept {
    return {group, rank, tag, timeout_ns, cache_bytes_, &recorder_};
  }

  // What it has under way.
  WorkList& works() noexcept { return works_; }

  void begin() noexcept {
    inside_ = true;
    recorder_.begin_run();
  }
  void end() noexcept { inside_ = false; }
  void set_merging(bool merging) noexcept { merging_ = merging; }

 private:
  Status not_now(const char* call) const noexcept;

  ReplicaPool& pool_;
  Group& group_;
  Recorder& recorder_;
  Arena arena_;
  WorkList works_;
  const std::size_t cache_bytes_;
  const int id_;
  bool inside_ = false;
  bool merging_ = false;
};

}  // namespace dist
