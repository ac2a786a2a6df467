// SPDX-License-Identifier: Apache-2.0
// Subgroups: the groups of a strategy beside that of all replicas. What ends a run ends the rounds of all of
// them.
//
// A run opens a group when a member first comes to it, so that groups which it does not use cost it nothing.
// What has happened to the run by then happens to the group, too: replicas have left, or it has been ended.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/async/channel.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/collective/collectives.hpp"
#include "core/comm/group.hpp"
#include "core/run/worker_group.hpp"

namespace dist {

class Replica;
class ReplicaPool;

// Some replicas, as the host holds them. Programs see ids and ranks of all workers; groups and channels have the members
// that are here.
struct Subgroup {
  struct Here {
    // `link` and `shape`: where members of other workers may be in it; else NULL.
    Here(Memory& memory, int size, const WaitPolicy& policy, const Host& host, int64_t timeout_ns,
         const Membership& membership, const ChannelHome& home, WorkerLink* link, const GroupShape* shape)
        : group(memory, size, policy, host, timeout_ns, membership),
          others(link != nullptr && shape->spans_workers()
                     ? std::make_optional<WorkerGroup>(memory, *link, group, host, *shape)
                     : std::nullopt),
          channel(memory, group, home, others ? &others->meeting() : nullptr) {}
    Group group;
    std::optional<WorkerGroup> others;  // workers that have members, where these are several
    LazyChannel channel;
  };

  Subgroup(ReplicaPool& owner, Memory& memory, int32_t its_number)
      : pool(owner), number(its_number), ids(&memory) {}
  int size() const noexcept {
    return here && ids.empty() ? here->group.size() : static_cast<int>(ids.size());
  }
  // Of a replica by its id; -1: it is no member.
  int rank(int32_t id) const noexcept;
  // The meeting with members of other workers; NULL: there are none.
  WorkerMeeting* meeting() noexcept { return here && here->others ? &here->others->meeting() : nullptr; }

  ReplicaPool& pool;
  std::atomic<uint32_t> opened{0};  // the latest run that has opened it
  const int32_t number;
  std::pmr::vector<int32_t> ids;  // where there are several workers; else empty: the seats are the ids
  std::optional<Here> here;       // none: no member is of this worker
};

// The replica as a member of the group. `call` is the function's name in messages.
Status member_of(Subgroup& subgroup, Replica& replica, const char* tag, int64_t timeout_ns, const char* call,
                 std::optional<Member>* out) noexcept;

// OK for the ids of a group: ascending, of a strategy's replicas.
Status check_ids(std::span<const int32_t> ids, int num_replicas) noexcept;

class Subgroups {
 public:
  Subgroups(Memory& memory, WaitGraph& graph, const Naming& naming, Counted* keeper)
      : memory_(memory), graph_(graph), naming_(naming), keeper_(keeper), all_(&memory), open_(&memory) {}
  // Those that are left end with it.
  ~Subgroups() {
    while (!all_.empty()) destroy(all_.back());
  }

  // What all groups are made with.
  struct Making {
    WaitPolicy policy;
    const Host& host;
    int64_t timeout_ns;
    const ChannelHome& home;
  };
  // Outside runs. Throws std::bad_alloc.
  Subgroup* create(ReplicaPool& pool, std::span<const int32_t> seats, const Making& making);
  // Of several workers, in two steps: it has its number, and is one of the groups, once all have made it.
  Subgroup* make(ReplicaPool& pool, WorkerLink& link, const GroupShape& shape, int32_t number,
                 const Making& making);
  void keep(Subgroup* made) noexcept;
  void destroy(Subgroup* subgroup) noexcept;
  int32_t latest_number() const noexcept { return latest_number_; }
  bool empty() const noexcept { return all_.empty(); }

  // With no member inside.
  void begin_run(const RunDeadline& deadline) noexcept;
  // Before a member uses a group, which is here, in a run. `whole`: that of all replicas.
  void open(Subgroup& subgroup, const Group& whole) noexcept {
    // acquire: for open_now()'s store when all is done.
    if (subgroup.opened.load(std::memory_order_acquire) != run_) [[unlikely]]
      open_now(subgroup, whole);
  }
  // A member of the pool has left its function, and the group of all replicas.
  void leave(int seat, Status returned, const ErrorRecord& failure) noexcept;
  void condemn(const ErrorRecord& why) noexcept;
  // Any thread, at any time; with a reason, while a run lasts.
  void cancel(const char* reason) noexcept;
  // Any thread, at any time; `visit` must not call the host.
  template <class Visit>
  void each(Visit&& visit) {
    const std::lock_guard lock(mutex_);
    for (const Subgroup* each : all_) visit(*each);
  }

 private:
  // What has ended the run, for groups that are opened later.
  enum class End { kNone, kCondemned, kCancelled };
  void open_now(Subgroup& subgroup, const Group& whole) noexcept;
  void end_rounds(Group& group) const noexcept;
  Subgroup* make_empty(ReplicaPool& pool, int32_t number);
  void fill(Subgroup& made, std::span<const int32_t> seats, const Making& making, WorkerLink* link,
            const GroupShape* shape);
  void unmake(Subgroup* made) noexcept;

  Memory& memory_;
  WaitGraph& graph_;
  const Naming naming_;
  Counted* const keeper_;
  std::mutex mutex_;  // of what follows; runs see no change of all_
  std::pmr::vector<Subgroup*> all_;
  // Those that the run has opened. There is room for all.
  std::pmr::vector<Subgroup*> open_;
  std::atomic<bool> any_open_{false};
  uint32_t run_ = 0;  // changes between runs alone
  RunDeadline deadline_;
  End end_ = End::kNone;
  ErrorRecord why_;                 // kCondemned
  bool has_reason_ = false;         // kCancelled
  char reason_[kReasonBytes] = "";  // the same
  int32_t latest_number_ = 0;
};

}  // namespace dist
