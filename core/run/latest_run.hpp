// SPDX-License-Identifier: Apache-2.0
// LatestRun: the number of a pool's latest run, and what its members need to start in it.
//
// Invariant: only the holder of the run lock changes it, and not while a member may still have to start. A run that was
// abandoned at its deadline therefore keeps it until all functions have returned.
//
// | run on          | begins with   | members find it by              |
// |-----------------|---------------|---------------------------------|
// | library threads | start()       | waiting for a change of word()  |
// | host threads    | open()        | entering                        |
// | the caller only | begin_alone() | the caller is the only member   |
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/status.hpp"
#include "core/comm/slot.hpp"
#include "core/comm/word.hpp"
#include "dist/types.h"

namespace dist {

class Replica;

// The function that a run executes on every replica. The only exception that may leave it is the forced unwind of
// pthread_exit(). The pool keeps a copy for replicas that start late, after the run's deadline.
struct Body {
  dist_status (*call)(Replica& replica, const Body& self);
  void* context;
  void (*function)() = nullptr;  // the host's, if `call` needs nothing else besides the context
  // Called once before the replicas start, so that the context can arrange to outlive the caller of the run;
  // may be NULL.
  void (*about_to_start)(void* context) = nullptr;
};

class LatestRun {
 public:
  // For the holder of the run lock, and for members in the run.
  const uint32_t& number() const noexcept { return number_; }
  // The latest run that start() began. Callable from any thread.
  uint32_t started() const noexcept { return started_.value.load(std::memory_order_acquire); }
  Word& word() noexcept { return started_; }
  const Body& body() const noexcept { return body_; }
  // The CPU of member 0 when the run began, if it is the caller; otherwise -1.
  int caller_cpu() const noexcept { return caller_cpu_; }
  // The run's number in the group of all members.
  uint32_t group_run() const noexcept { return group_run_; }

  // The members look at this cache line all the time, so it is written at once.
  void start(const Body& body, int caller_cpu, uint32_t group_run, const WaitPolicy& policy) noexcept {
    body_ = body;
    caller_cpu_ = caller_cpu;
    group_run_ = group_run;
    ++number_;
    started_.publish(number_, policy);
  }
  void open(uint32_t group_run) noexcept {
    group_run_ = group_run;
    ++number_;
  }
  void begin_alone() noexcept { ++number_; }
  // For a run that begin_alone() began, before its member concludes it.
  void set_group_run(uint32_t group_run) noexcept { group_run_ = group_run; }

 private:
  alignas(kApart) Word started_;
  uint32_t number_ = 0;
  int caller_cpu_ = -1;
  Body body_{};
  uint32_t group_run_ = 0;
};

}  // namespace dist
