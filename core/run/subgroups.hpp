// SPDX-License-Identifier: Apache-2.0
// Subgroups: the groups of a strategy beside that of all replicas. What ends a run ends the rounds of all of
// them.
#pragma once

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

namespace dist {

class Replica;
class ReplicaPool;

// Some replicas, as the host holds them.
struct Subgroup {
  Subgroup(ReplicaPool& owner, Memory& memory, int size, const WaitPolicy& policy, const Host& host,
           int64_t timeout_ns, const Membership& membership, const ChannelHome& home)
      : pool(owner),
        group(memory, size, policy, host, timeout_ns, membership),
        channel(memory, group, home, nullptr) {}
  ReplicaPool& pool;
  Group group;
  LazyChannel channel;
};

// The replica as a member of the group. `call` is the function's name in messages.
Status member_of(Subgroup& subgroup, Replica& replica, const char* tag, int64_t timeout_ns, const char* call,
                 std::optional<Member>* out) noexcept;

// OK for the ids of a group: ascending, of a strategy's replicas.
Status check_ids(std::span<const int32_t> ids, int num_replicas) noexcept;

class Subgroups {
 public:
  Subgroups(Memory& memory, WaitGraph& graph, const Naming& naming, Counted* keeper)
      : memory_(memory), graph_(graph), naming_(naming), keeper_(keeper), all_(&memory) {}
  // Those that are left end with it.
  ~Subgroups() {
    while (!all_.empty()) destroy(all_.back());
  }

  // Outside runs. Throws std::bad_alloc.
  Subgroup* create(ReplicaPool& pool, std::span<const int32_t> seats, WaitPolicy policy, const Host& host,
                   int64_t timeout_ns, const ChannelHome& home);
  void destroy(Subgroup* subgroup) noexcept;
  bool empty() const noexcept { return all_.empty(); }

  void begin_run(const RunDeadline& deadline) noexcept {
    for (Subgroup* each : all_) {
      each->channel.begin_run();
      each->group.begin_run(deadline);
    }
  }
  // A member of the pool has left its function.
  void leave(int seat, Status returned, const ErrorRecord& failure) noexcept;
  void condemn(const ErrorRecord& why) noexcept {
    for (Subgroup* each : all_) each->group.condemn(why);
  }
  // Any thread, at any time.
  void cancel() noexcept;
  // Any thread, while a run lasts.
  void cancel(const char* reason) noexcept {
    for (Subgroup* each : all_) each->group.cancel(reason);
  }
  // Any thread, at any time; `visit` must not call the host.
  template <class Visit>
  void each(Visit&& visit) {
    const std::lock_guard lock(mutex_);
    for (const Subgroup* each : all_) visit(each->group);
  }

 private:
  Memory& memory_;
  WaitGraph& graph_;
  const Naming naming_;
  Counted* const keeper_;
  std::mutex mutex_;  // changes of the list against cancel(); runs see no change
  std::pmr::vector<Subgroup*> all_;
  int32_t latest_number_ = 0;
};

}  // namespace dist
