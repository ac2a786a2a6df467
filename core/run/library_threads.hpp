// SPDX-License-Identifier: Apache-2.0
// LibraryThreads: the members' threads that libdist creates. Between runs they wait for the next one, or serve the idle
// handler if there is one.
//
// Invariants:
// - A run that was started is executed before its threads stop.
// - A thread that was replaced or left alone never touches the pool again after its function returns.
//
// | member's thread | entered by              | left by                                           |
// |-----------------|-------------------------|---------------------------------------------------|
// | waiting         | start(), a finished run | the next run, an idle handler, end()              |
// | in a run        | the start of a run      | the end of its function                           |
// | serving         | an idle handler         | the next run, end(), replace() by another thread  |
// | lost            | its end inside a run    | revive()                                          |
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/base/replicas.hpp"
#include "core/base/status.hpp"
#include "core/run/closing.hpp"
#include "core/run/idle_handler.hpp"
#include "core/run/latest_run.hpp"
#include "core/run/library_thread.hpp"
#include "core/run/members.hpp"
#include "core/run/pool_facts.hpp"

namespace dist {

class LibraryThreads {
 public:
  // `handler`: what uses the replicas between runs; NULL: nothing yet. Throws std::bad_alloc.
  LibraryThreads(const PoolFacts& facts, Group& group, LatestRun& latest, Members& members,
                 const Closing& closing, const std::atomic<IdleHandler*>& handler);

  // Does nothing if the host lends the threads, like the other functions.
  Status start() noexcept;
  // For the holder of the run lock: replaces threads that ended inside the last run. The creation is out of line, so
  // that a normal run pays only for the check.
  Status revive() noexcept {
    std::unique_lock replacing(starting_, std::defer_lock);
    if (handler_.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
      replacing.lock();
    for (int i = facts_.first_library_replica(); i < count_; ++i) {
      if (members_.lost_thread(i) || !thread(i).started()) [[unlikely]]
        DIST_TRY(restart(i));
    }
    return kOk;
  }
  // Waits until all threads serve the handler.
  void await_handler() noexcept;
  // Called by the idle handler: gives the replica a new thread while the old one is inside its callback
  // or about to end.
  Status replace(LocalReplica replica) noexcept;
  // Ends the threads: those that have finished the latest run now, the others when they return. No run may start after
  // this.
  void end() noexcept;

 private:
  struct MemberThread {
    LibraryThread thread;
    std::atomic<bool> with_handler{false};  // it has called IdleHandler::serve()
  };

  LibraryThread& thread(int rank) noexcept { return threads_[static_cast<std::size_t>(rank)].thread; }
  Status start(int rank) noexcept;
  Status restart(int rank) noexcept;
  void serve(int rank);
  bool await_run(int rank, uint32_t seen);
  void end(int rank) noexcept;

  const PoolFacts& facts_;
  Group& group_;
  LatestRun& latest_;
  Members& members_;
  const Closing& closing_;
  const std::atomic<IdleHandler*>& handler_;
  const int count_;                         // of members; 0 if the host lends the threads
  std::pmr::vector<MemberThread> threads_;  // by rank
  // Serializes thread creation, because an idle handler may replace a thread while a run begins.
  std::mutex starting_;
  std::atomic<bool> stopping_{false};  // threads end after the latest run
};

}  // namespace dist
