// SPDX-License-Identifier: Apache-2.0
// A thread that serves as an instance: it creates the instance's state, takes requests until a run or the end of
// serving needs the replica, and destroys the state.
//
// | the thread | Instance::attended | when it ends |
// |---|---|---|
// | serves | yes | inside a host callback (pthread_exit): the request fails, and the replica gets another thread |
// | leaves, for a run or because serving ends | no | nothing is left to do |
// | was abandoned (Stay::left()) | of its successor | Stuck cleans up |
//
// Invariant: one object for each thread that serves, on its stack.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/run/replica_pool.hpp"
#include "core/serve/clock_thread.hpp"
#include "core/serve/dispatcher.hpp"
#include "core/serve/instances_options.hpp"
#include "core/serve/lifecycle.hpp"
#include "core/serve/request_runner.hpp"
#include "core/serve/withdrawals.hpp"

namespace dist {

// What the threads of all instances use.
struct Serving {
  ReplicaPool& pool;
  const Host& host;
  InstancesOptions& options;
  Lifecycle& lifecycle;
  Dispatcher& dispatcher;
  Withdrawals& withdrawals;
  ClockThread& clock;
  RequestRunner runner;
  const WaitPolicy policy;
  const bool spins_eagerly;              // see spin_eagerly()
  std::atomic<int64_t> spin_ns{60'000};  // of an idle instance
};

class InstanceThread {
 public:
  InstanceThread(Serving& serving, int rank) noexcept;
  ~InstanceThread();
  InstanceThread(const InstanceThread&) = delete;
  InstanceThread& operator=(const InstanceThread&) = delete;

  // Serves until `started` differs from `seen` or `stopping` is set. Returns false if another thread has replaced
  // this one.
  bool serve_between_runs(const std::atomic<uint32_t>& started, uint32_t seen,
                          const std::atomic<bool>& stopping);
  // Serves until the instances close. Returns the error of creating the state.
  Status serve_until_closed();

 private:
  void await(uint32_t rung) noexcept;
  void tend();
  void make_state();
  void end_state();
  void leave() noexcept;
  void end_if_none_is_left(const ErrorRecord& why) noexcept;
  void ended_inside() noexcept;

  Serving& serving_;
  Dispatcher& dispatcher_;
  Instance& at_;
  Stay stay_;
  bool left_ = false;  // the thread leaves regularly
};

}  // namespace dist
