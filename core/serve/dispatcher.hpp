// SPDX-License-Identifier: Apache-2.0
// Gives queued requests to idle instances, and all instances to a run.
//
// | an instance is | its thread | in the queue |
// |---|---|---|
// | without its state | creates it, or has left | takes no part |
// | idle | waits for its bell | free |
// | busy | runs `current` | busy |
// | taken by a run | is in the run | away |
//
// Invariants:
// - `mutex()` protects the queue and every member of the instances that is not atomic. It is held only for short
//   updates: never while a host callback runs, and never while a thread waits.
// - Each request that is given to an instance rings its bell once.
// - After each change to the queue that may free an entry, dispatch() is called under the same lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/comm/word.hpp"
#include "core/run/replica_pool.hpp"
#include "core/serve/instance.hpp"
#include "core/serve/request_queue.hpp"
#include "core/serve/short_lock.hpp"
#include "core/serve/stuck_watch.hpp"

namespace dist {

// A request for all replicas: on the stack of a waiting thread, or the one of host threads that enter one by one.
struct RunAsker final : RequestQueue::Entry, Cancel::Link {
  enum : uint32_t { kWaiting, kHas, kCancelled, kRefused };
  explicit RunAsker(bool of_entering) noexcept : entering(of_entering) {}
  void cancelled(const char* reason) noexcept override;
  std::atomic<uint32_t> word{kWaiting};
  const bool entering;
};

class Dispatcher {
 public:
  Dispatcher(Memory& memory, ReplicaPool& pool, const Host& host, std::size_t most);
  ~Dispatcher() = default;
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  ShortLock& mutex() const noexcept { return mutex_; }
  std::span<Instance> instances() noexcept { return instances_; }
  std::span<const Instance> instances() const noexcept { return instances_; }
  Instance& at(int rank) noexcept { return instances_[static_cast<std::size_t>(rank)]; }
  // Rung when the clock thread must look earlier than planned.
  Word& alarm() noexcept { return alarm_; }
  // The current time in units of the recorders.
  uint64_t stamp() const noexcept { return clock_.now(); }
  // Rings all bells.
  void wake() noexcept;
  bool is_inside(int rank) const noexcept {
    return instances_[static_cast<std::size_t>(rank)].inside.load(std::memory_order_acquire);
  }
  // Lists the replicas inside host callbacks, for example "replicas 1, 3", and returns their number.
  int list_inside(std::span<char> text) const noexcept;

  // ---- Under the mutex ----
  RequestQueue& queue() noexcept { return queue_; }
  const RequestQueue& queue() const noexcept { return queue_; }
  StuckWatch& watch() noexcept { return watch_; }
  // Queues the request or gives it to an instance, unless the queue is full. *out_sooner: the alarm must be rung.
  RequestQueue::Arrived arrive(Request& request, bool* out_sooner) noexcept {
    int instance = 0;
    const RequestQueue::Arrived arrived = queue_.arrive(request, &instance);
    if (arrived == RequestQueue::Arrived::kGiven) give(instance, request);
    if (arrived == RequestQueue::Arrived::kQueued && request.deadline_ns != 0)
      *out_sooner = is_sooner(request);
    return arrived;
  }
  // The request that an idle instance takes; NULL: it waits.
  Request* come(Instance& at) noexcept {
    auto* const request = static_cast<Request*>(at.ready ? queue_.come(at.rank) : nullptr);
    occupy(at, request);
    if (request == nullptr && at.ready && queue_.any_for_all() != nullptr) dispatch();
    return at.current;
  }
  void dispatch() noexcept;
  // A run may have been waiting only for this entry.
  void withdraw(RequestQueue::Entry& entry) noexcept;
  // The first queued request if its deadline has expired, which is withdrawn; otherwise NULL, and *out_next_ns is the
  // next deadline; 0: none.
  Request* withdraw_overdue(int64_t* out_next_ns) noexcept;
  // The instance that runs the request; NULL: none.
  Instance* running(const Request& request) noexcept;
  // Whether a thread that serves may still create its state.
  bool some_begin() const noexcept;

  // ---- Without the mutex ----
  // Tells all running functions to end. NULL: by dist_strategy_cancel().
  void cancel_running(const char* reason) noexcept;
  // Copies the reason why the request was cancelled.
  void copy_reason(const Request& request, char (&reason)[kReasonBytes]) const noexcept;

  // ---- For batchers: steps are queued like requests, but are never refused ----
  void enqueue_step(Request& step) noexcept;
  void raise_step(Request& step, int32_t priority) noexcept;
  // Returns false if it is not queued.
  bool withdraw_step(Request& step) noexcept;
  // Tells an instance that one of the step's items must end. Does nothing if the instance is not running this
  // step.
  void tell_step(int rank, const Request& step) noexcept;

 private:
  // Sets what an instance runs from now on; NULL: nothing.
  void occupy(Instance& at, Request* request) noexcept {
    at.current = request;
    if (watch_.on()) [[unlikely]]
      watch_.next(at);
  }
  void give(int rank, Request& request) noexcept;
  void grant(RequestQueue::Entry& entry) noexcept;
  bool is_sooner(const Request& request) noexcept;

  // The lock and the changing members of the queue share a cache line, which is all that an instance and a
  // submitting thread compete for.
  alignas(kApart) mutable ShortLock mutex_;
  RequestQueue queue_;
  alignas(kApart) std::pmr::vector<Instance> instances_;
  ReplicaPool& pool_;
  const Host& host_;
  const Recorder& clock_;                  // for timestamps
  char all_cancelled_[kReasonBytes] = "";  // reason of the latest cancel_running()
  int64_t planned_ns_ = 0;  // when the clock thread looks at the queue next; 0: when the alarm rings
  Word alarm_;
  StuckWatch watch_;
};

}  // namespace dist
