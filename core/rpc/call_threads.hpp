// SPDX-License-Identifier: Apache-2.0
// CallThreads: threads on which calls of other processes are done, several at a time, in the order in which they have come.
// Each has a cancel object, which is signalled where nobody waits for its answer any more, or the threads end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory_resource>
#include <mutex>
#include <vector>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/status.hpp"
#include "core/engine/calls.hpp"

namespace dist {

class CallThreads {
 public:
  // Who does the calls.
  class Worker {
   public:
    // Answers it. On one of the threads.
    virtual void run(IncomingCall& call, Cancel& cancel) noexcept = 0;

   protected:
    ~Worker() = default;
  };

  // Beyond `max_queued` that wait for a thread, a call is RESOURCE_EXHAUSTED.
  CallThreads(Memory& memory, Worker& worker, std::size_t max_queued);
  ~CallThreads();

  // They are shown as "dist-rpc-0" where `name` is "rpc". RESOURCE_EXHAUSTED: none is left.
  Status start(std::size_t num_threads, const char* name);
  // What waits is UNAVAILABLE, of what runs the cancel object is signalled and its end waited for, and what comes later is
  // UNAVAILABLE. Not on one of the threads. Again is the same as once.
  void stop(const char* why) noexcept;
  // Whether this is one of them.
  bool inside() const noexcept { return here() >= 0; }
  // Which one of them this is; -1: none.
  int here() const noexcept;

  // As CallHandler has them; never waits.
  void add(Ref<IncomingCall> call) noexcept;
  void given_up(IncomingCall& call) noexcept;
  // Signals the cancel objects of those that run.
  void cancel_running(const char* why) noexcept;

 private:
  class Job;

  Ref<Counted> take_work(IncomingCall& call) noexcept;
  static void* serve_main(void* self);
  void serve() noexcept;

  Memory& memory_;
  Worker& worker_;
  const std::size_t max_queued_;
  std::pmr::deque<Thread> threads_;
  std::atomic<int> num_begun_{0};  // of the threads

  std::mutex mutex_;
  std::condition_variable come_;
  std::pmr::deque<Ref<Job>> queue_;
  std::pmr::vector<Job*> running_;
  bool stopping_ = false;
};

}  // namespace dist
