// SPDX-License-Identifier: Apache-2.0
// Threads that run calls from other processes, several at a time, in order of arrival.
//
// Invariant: each call has a cancel object, which is signalled when its client no longer waits for the
// answer, or when the threads are stopped.
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
#include "core/net/calls.hpp"

namespace dist {

class CallThreads {
 public:
  // Runs the calls.
  class Worker {
   public:
    // Runs and answers a call, on one of the threads.
    virtual void run(IncomingCall& call, Cancel& cancel) noexcept = 0;

   protected:
    ~Worker() = default;
  };

  // If `max_queued` calls are waiting for a thread, further ones fail with RESOURCE_EXHAUSTED.
  CallThreads(Memory& memory, Worker& worker, std::size_t max_queued);
  ~CallThreads();

  // If `name` is "rpc", the threads are named "dist-rpc-0" and so on. Fails with RESOURCE_EXHAUSTED if no
  // thread can be created.
  Status start(std::size_t num_threads, const char* name);
  // Fails waiting and later calls with UNAVAILABLE, signals the cancel objects of running ones, and waits for
  // them. Must not be called on one of these threads. Further calls have no effect.
  void stop(const char* why) noexcept;
  // Whether the calling thread is one of these threads.
  bool inside() const noexcept { return here() >= 0; }
  // The index of the calling thread among these threads; -1 if it is another thread.
  int here() const noexcept;

  // For CallHandler; does not block.
  void add(Ref<IncomingCall> call) noexcept;
  void given_up(IncomingCall& call) noexcept;
  // Signals the cancel objects of the running calls.
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
