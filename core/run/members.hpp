// SPDX-License-Identifier: Apache-2.0
// Members: the members of a pool, and how far each of them is in the latest run.
//
// Invariants:
// - A member has finished a run exactly if its word is the number of that run.
// - The result of a member belongs to the thread that runs its function until the member has finished.
//
// | member   | entered by                 | left by                                    |
// |----------|----------------------------|--------------------------------------------|
// | finished | renew(), conclude()        | the start of a run (LatestRun)             |
// | inside   | the start of a run         | conclude(), also if the thread ends inside |
#pragma once

#include <cstdint>
#include <span>

#include "core/base/os/fork.hpp"
#include "core/base/status.hpp"
#include "core/run/latest_run.hpp"
#include "core/run/pool_facts.hpp"
#include "core/run/replica.hpp"
#include "core/run/run_groups.hpp"

namespace dist {

class Members {
 public:
  // The replicas refer to `pool`. Throws std::bad_alloc.
  Members(const PoolFacts& facts, const LatestRun& latest, RunGroups& groups, ReplicaPool& pool);
  ~Members();
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  Replica& replica(int rank) const noexcept { return states_[rank].replica; }

  // Executes the run's body as a member. Must be called on the thread that runs its function.
  void perform(int rank);
  // The function has returned: stores its result, leaves the groups, and notifies the waiting threads.
  // `failures_before` is failures_on_this_thread() before the function.
  void conclude(int rank, Status status, uint64_t failures_before) noexcept;
  // Between runs: the member gets another thread, and is part of no earlier run.
  void renew(int rank) noexcept;
  // Whether the member's thread has ended inside its function.
  bool lost_thread(int rank) const noexcept { return states_[rank].lost_thread; }

  // The latest run that the member has finished.
  uint32_t finished(int rank) const noexcept {
    return states_[rank].finished.value.load(std::memory_order_acquire);
  }
  bool all_finished(uint32_t run) const noexcept;
  bool all_finished() const noexcept { return all_finished(latest_.number()); }
  // Waits until the member has finished the latest run. Returns false if the deadline (of the host's clock; 0: none) has
  // expired, or in a forked child.
  bool await(int rank, int64_t deadline_ns) noexcept;
  // Lists the members that have not finished the run, and returns their number.
  int32_t list_inside(uint32_t run, std::span<char> text) const noexcept;

  // After the latest run: its failure, or OK.
  Status outcome() const noexcept;
  // Records success for a run that needs no conclude().
  void succeed(int rank) noexcept { states_[rank].result = DIST_OK; }

 private:
  struct alignas(kApart) State {
    State(const PoolFacts& facts, ReplicaPool& pool, Group& group, int rank, WipedWords::Word* here) noexcept;
    Replica replica;
    alignas(kApart) Word finished;
    dist_status result = DIST_OK;
    bool lost_thread = false;  // by pthread_exit()
    ErrorRecord error;
  };
  class Turn;

  Status drain(Replica& replica, Status returned) noexcept;
  ErrorRecord report_for_devices(const State& failed) const noexcept;

  const PoolFacts& facts_;
  const LatestRun& latest_;
  RunGroups& groups_;
  WipedWords here_;  // by rank: the thread that runs the function
  State* states_ = nullptr;
  int made_ = 0;  // number of constructed states
};

}  // namespace dist
