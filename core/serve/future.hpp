// SPDX-License-Identifier: Apache-2.0
// The host's handle of a submission, a request or an item of a batch, from submission until its last
// reference is released.
//
// References are held by the thread that will complete it, the host's handle, and the completions queue that
// it is in. Releasing the last one returns it to its pool of objects for reuse.
//
// Invariant: it completes once. The thread that completes it stores the outcome, then publishes `ended_`, and
// must not touch it after giving up its reference.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/cancel.hpp"
#include "core/comm/word.hpp"
#include "core/run/replica_pool.hpp"
#include "core/serve/completions.hpp"
#include "core/serve/endings.hpp"
#include "core/serve/lines.hpp"
#include "core/serve/request_handle.hpp"

namespace dist {

class Instances;

// The arguments of dist_submit().
struct Submission {
  Body body;
  int32_t priority = 0;
  int64_t timeout_ns = 0;  // until completion; not positive: none
  int64_t id = 0;          // of a request, in traces; 0: its sequence number
  Cancel* cancel = nullptr;
  Completions* completions = nullptr;  // receives it on completion; may be NULL
  // Called on completion with the handle and the body's context; may be NULL.
  void (*done)(RequestHandle& work, void (*function)(), void* user_data) = nullptr;
  void (*done_function)() = nullptr;
};

class Future : public RequestHandle, private Cancel::Link {
 public:
  ~Future() override;

  // ---- The host's handle ----
  Status test(bool* out_ended) noexcept override;
  Status wait(int64_t timeout_ns) noexcept override;
  Status wait_any(RequestHandle* const* works, std::size_t n, int64_t timeout_ns,
                  std::size_t* out_index) noexcept override;
  void close() noexcept override;
  Future& future() noexcept override { return *this; }
  Status take(int64_t timeout_ns, void** out) noexcept override;
  void* user_data() const noexcept override { return body_.context; }

  // ---- For the thread that completes it ----
  // Links it to its cancel object. Returns false if that was signalled already.
  bool link() noexcept { return !cancel_ || add_link(); }
  // Completes it; `why` is the report of a failure. Passes the caller's reference to the completions queue or
  // releases it. Must not be called under a lock that signalling the cancel object needs. `by` counts it.
  virtual void end(Status status, const ErrorRecord* why, Endings& by) noexcept;
  // The same, while the cancel object is being signalled: the link stays for now.
  void end_in_signal(const ErrorRecord& why) noexcept;
  // Releases a reference.
  void let_go() noexcept {
    // acquire and acq_rel: the effects of all users come before its reuse. Nobody can add a reference to the
    // last one.
    if (uses_.load(std::memory_order_acquire) != 1 && uses_.fetch_sub(1, std::memory_order_acq_rel) != 1)
      return;
    if (cancel_) [[unlikely]]
      unlink();
    recycle();
  }
  // It was not accepted: releases it without notifying anybody or counting it.
  void drop() noexcept;

  Instances& home() const noexcept { return home_; }
  bool ended() const noexcept { return ended_.value.load(std::memory_order_acquire) != 0; }
  // True if nobody else has a reference: the caller is the one that completes it, or knows that it has one.
  bool is_used_once() const noexcept { return uses_.load(std::memory_order_acquire) == 1; }
  // True if nobody can notice that it completes, and it is linked to nothing: it has neither a handle nor
  // completions, a `done` callback, a cancel object, or an insider that waits for it.
  bool is_plain() const noexcept { return plain_; }
  const Body& body() const noexcept { return body_; }
  Cancel* cancel_object() const noexcept { return cancel_.get(); }
  int64_t timeout_ns() const noexcept { return timeout_ns_; }
  Status result() const noexcept;
  void call_done() noexcept { done_(*this, done_function_, body_.context); }

  Future* next = nullptr;  // link in completions, or among the objects for reuse
  // For completions, under their mutex: it is queued, and it will not be added again.
  bool lies_there = false;
  bool comes_last = false;
  std::atomic<bool> arrived{false};  // the host has taken it from completions for the last time
  // The handle that completions pass to the host for one arrival, which is the last one or not.
  virtual RequestHandle& arrival(bool) noexcept { return *this; }
  std::atomic<bool> cancel_asked{false};
  bool cancelled_with_all = false;  // for requests, under the dispatcher's mutex

 protected:
  Future(Memory& memory, Instances& home) noexcept : RequestHandle(memory), home_(home) {}
  // Prepares it for a submission, with `uses` references. The caller must be its only user. `insider`: the
  // budget user that requests it from inside a callback; may be NULL.
  void begin_future(const Submission& given, int uses, BudgetParty* insider) noexcept {
    // A use that ended in a signal has left its cancel object.
    if (cancel_) [[unlikely]]
      unlink();
    body_ = given.body;
    timeout_ns_ = given.timeout_ns;
    code_ = DIST_OK;
    cancel_asked.store(false, std::memory_order_relaxed);
    cancelled_with_all = false;
    uses_.store(uses, std::memory_order_relaxed);
    plain_ = uses == 1 && given.completions == nullptr && given.done == nullptr && given.cancel == nullptr &&
             insider == nullptr;
    if (!plain_) link_to(given, insider);
  }
  // Adds a reference, which let_go() releases.
  void hold() noexcept { uses_.fetch_add(1, std::memory_order_relaxed); }
  // Adds it to its completions before it completes. Returns false if there are none or the host has closed
  // them.
  bool arrive_early() noexcept;
  // Called when no reference is left.
  virtual void recycle() noexcept = 0;
  void unlink() noexcept;

 private:
  bool add_link() noexcept;
  void link_to(const Submission& given, BudgetParty* insider) noexcept;
  void leave_budget() noexcept;

  Instances& home_;
  Body body_{};
  int64_t timeout_ns_ = 0;
  Ref<Cancel> cancel_;
  bool linked_ = false;  // to its cancel object
  BudgetParty* inside_ =
      nullptr;  // an insider that requested it waits as this user until it has completed; may be NULL
  Ref<Completions> completions_;
  void (*done_)(RequestHandle&, void (*)(), void*) = nullptr;
  void (*done_function_)() = nullptr;
  std::atomic<int> uses_{0};
  dist_status code_ = DIST_OK;
  ErrorRecord* error_ = nullptr;  // report of a failure, if there was memory for it
  bool plain_ = true;
  Word ended_;  // 1: completed
};

}  // namespace dist
