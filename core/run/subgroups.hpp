// SPDX-License-Identifier: Apache-2.0
// Subgroups: the groups of a strategy that contain only some of its replicas.
//
// A group is opened for a run when its first member uses it, so unused groups cost the run nothing. If the
// run was ended or some replicas have already left, opening applies this to the group as well.
//
// Invariant: whatever ends a run ends the rounds of all its groups, whether they are open already or opened
// later.
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

// A group as the host holds it. Programs use the ids and ranks of all workers; `here` has the members in this
// process.
struct Subgroup {
  struct Here {
    // `link` and `shape` are set if other workers may have members; otherwise NULL.
    Here(Memory& memory, int size, const WaitPolicy& policy, const Host& host, int64_t timeout_ns,
         const GroupMembers& members, const ChannelHome& home, WorkerLink* link, const GroupShape* shape)
        : group(memory, size, policy, host, timeout_ns, members),
          others(link != nullptr && shape->spans_workers()
                     ? std::make_optional<WorkerGroup>(memory, *link, group, host, *shape)
                     : std::nullopt),
          channel(memory, group, home, others ? &others->communicator() : nullptr) {}
    Group group;
    std::optional<WorkerGroup> others;  // workers with members, if there are several
    LazyChannel channel;
  };

  Subgroup(ReplicaPool& owner, Memory& memory, int32_t its_number)
      : pool(owner), number(its_number), ids(&memory) {}
  int size() const noexcept {
    return here && ids.empty() ? here->group.size() : static_cast<int>(ids.size());
  }
  // The rank of a replica id; -1 if it is not a member.
  int rank(int32_t id) const noexcept;
  // The communicator with the members of other workers; NULL if there are none.
  WorkerCommunicator* communicator() noexcept {
    return here && here->others ? &here->others->communicator() : nullptr;
  }

  ReplicaPool& pool;
  std::atomic<uint32_t> opened{0};  // the latest run in which it was opened
  const int32_t number;
  std::pmr::vector<int32_t> ids;  // only with several workers; otherwise empty, and ids are local
  std::optional<Here> here;       // empty if this worker has no member
};

// The replica as a member of the group. `call` is the host's function, for messages.
Status member_of(Subgroup& subgroup, Replica& replica, const char* tag, int64_t timeout_ns, const char* call,
                 std::optional<Member>* out) noexcept;

// Checks that the ids are ascending and belong to the strategy's replicas.
Status check_ids(std::span<const int32_t> ids, int num_replicas) noexcept;

class Subgroups {
 public:
  Subgroups(Memory& memory, WaitGraph& graph, const Naming& naming, Counted* keeper)
      : memory_(memory), graph_(graph), naming_(naming), keeper_(keeper), all_(&memory), open_(&memory) {}
  // Destroys the remaining groups.
  ~Subgroups() {
    while (!all_.empty()) destroy(all_.back());
  }

  // The settings for creating groups.
  struct Making {
    WaitPolicy policy;
    const Host& host;
    int64_t timeout_ns;
    const ChannelHome& home;
  };
  // Must be called outside of runs. Throws std::bad_alloc.
  Subgroup* create(ReplicaPool& pool, std::span<const int32_t> local_ranks, const Making& making);
  // With several workers, creation has two steps: make() creates the group with its number, and keep() adds
  // it once all workers have made theirs.
  Subgroup* make(ReplicaPool& pool, WorkerLink& link, const GroupShape& shape, int32_t number,
                 const Making& making);
  void keep(Subgroup* made) noexcept;
  void destroy(Subgroup* subgroup) noexcept;
  int32_t latest_number() const noexcept { return latest_number_; }
  bool empty() const noexcept { return all_.empty(); }

  // No member may be inside.
  void begin_run(const RunDeadline& deadline) noexcept;
  // Must be called before a member uses a group of this worker in a run. `whole` is the group of all
  // replicas.
  void open(Subgroup& subgroup, const Group& whole) noexcept {
    // acquire pairs with the store at the end of open_now().
    if (subgroup.opened.load(std::memory_order_acquire) != run_) [[unlikely]]
      open_now(subgroup, whole);
  }
  // A member of the pool has left its function and the group of all replicas.
  void leave(int local_rank, Status returned, const ErrorRecord& failure) noexcept;
  void condemn(const ErrorRecord& why) noexcept;
  // Callable from any thread at any time. With a reason, it applies only while a run lasts.
  void cancel(const char* reason) noexcept;
  // Callable from any thread at any time. `visit` must not call the host.
  template <class Visit>
  void each(Visit&& visit) {
    const std::lock_guard lock(mutex_);
    for (const Subgroup* each : all_) visit(*each);
  }

 private:
  // How the run was ended, for groups that are opened later.
  enum class End { kNone, kCondemned, kCancelled };
  void open_now(Subgroup& subgroup, const Group& whole) noexcept;
  void end_rounds(Group& group) const noexcept;
  Subgroup* make_empty(ReplicaPool& pool, int32_t number);
  void fill(Subgroup& made, std::span<const int32_t> local_ranks, const Making& making, WorkerLink* link,
            const GroupShape* shape);
  void unmake(Subgroup* made) noexcept;

  Memory& memory_;
  WaitGraph& graph_;
  const Naming naming_;
  Counted* const keeper_;
  std::mutex mutex_;  // protects the members below; all_ does not change during a run
  std::pmr::vector<Subgroup*> all_;
  // The groups that the run has opened. Its capacity suffices for all of them.
  std::pmr::vector<Subgroup*> open_;
  std::atomic<bool> any_open_{false};
  uint32_t run_ = 0;  // changes only between runs
  RunDeadline deadline_;
  End end_ = End::kNone;
  ErrorRecord why_;                 // for kCondemned
  bool has_reason_ = false;         // for kCancelled
  char reason_[kReasonBytes] = "";  // the same
  int32_t latest_number_ = 0;
};

}  // namespace dist
