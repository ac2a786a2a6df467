// SPDX-License-Identifier: Apache-2.0
// Promise: what a host waits for, from its submission until nobody has it any more: a request, or a batch's item.
//
// Who has a use of it: whoever is to end it, the host's handle, and the completions that it lies in. When the last use is
// let go of, it goes back to where it came from and serves again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/async/host_work.hpp"
#include "core/base/cancel.hpp"
#include "core/comm/word.hpp"
#include "core/run/replica_pool.hpp"
#include "core/serve/lines.hpp"

namespace dist {

class Completions;
class Instances;

// What dist_submit() asks for.
struct Submission {
  Body body;
  int32_t priority = 0;
  int64_t timeout_ns = 0;  // until its end; 0: none
  int64_t id = 0;          // of a request, in traces; 0: its number among all
  Cancel* cancel = nullptr;
  Completions* completions = nullptr;  // where it arrives when it has ended; NULL: nowhere
  // Called there with the request and the body's context; NULL: not.
  void (*done)(HostWork& work, void (*function)(), void* user_data) = nullptr;
  void (*done_function)() = nullptr;
};

class Promise : public HostWork, private Cancel::Link {
 public:
  ~Promise() override;

  // ---- The host's handle ----
  Status check_use(const WorkList* here, const char* call) const noexcept override;
  Status test(bool* out_ended) noexcept override;
  Status wait(int64_t timeout_ns) noexcept override;
  Status wait_any(HostWork* const* works, std::size_t n, int64_t timeout_ns,
                  std::size_t* out_index) noexcept override;
  void close() noexcept override;
  void* user_data() const noexcept override { return body_.context; }

  // ---- For who ends it ----
  // False: its cancel object has been signalled already.
  bool link() noexcept;
  // It ends; `why` is of a failure. This gives the use of whoever ends it to the completions, or lets go of it. Not
  // under a lock that a signal of its cancel object needs.
  virtual void end(Status status, const ErrorRecord* why) noexcept;
  // The same in that signal, where the link stays for now.
  void end_in_signal(const ErrorRecord& why) noexcept;
  void let_go() noexcept;
  // It was not accepted: nobody hears of it.
  void drop() noexcept;

  Instances& home() const noexcept { return home_; }
  bool ended() const noexcept { return ended_.value.load(std::memory_order_acquire) != 0; }
  // By nobody but its ender, or whoever else is known to have a use.
  bool is_used_once() const noexcept { return uses_.load(std::memory_order_acquire) == 1; }
  const Body& body() const noexcept { return body_; }
  Cancel* cancel_object() const noexcept { return cancel_.get(); }
  int64_t timeout_ns() const noexcept { return timeout_ns_; }
  Status result() const noexcept;
  void call_done() noexcept { done_(*this, done_function_, body_.context); }

  Promise* next = nullptr;  // in completions, or among those that serve again
  // In completions, under their mutex: it lies there, and does not come again.
  bool lies_there = false;
  bool comes_last = false;
  std::atomic<bool> arrived{false};  // for the last time, at the host
  std::atomic<bool> cancel_asked{false};
  bool cancelled_with_all = false;  // for requests, under the instances' mutex

 protected:
  Promise(Memory& memory, Instances& home) noexcept : HostWork(memory), home_(home) {}
  // It is the caller's, with `uses` uses.
  void begin_promise(const Submission& given, int uses) noexcept;
  // Another use, which let_go() ends.
  void hold() noexcept { uses_.fetch_add(1, std::memory_order_relaxed); }
  // It arrives in its completions before its end. False: there are none, or the host has given them up.
  bool arrive_early() noexcept;
  // What no use is left of.
  virtual void recycle() noexcept = 0;
  void unlink() noexcept;

 private:
  void leave_budget() noexcept;

  Instances& home_;
  Body body_{};
  int64_t timeout_ns_ = 0;
  Ref<Cancel> cancel_;
  bool linked_ = false;  // to it
  BudgetParty* inside_ =
      nullptr;  // as whom an insider who has asked for it waits, until it has ended; NULL: none did
  Ref<Completions> completions_;
  void (*done_)(HostWork&, void (*)(), void*) = nullptr;
  void (*done_function_)() = nullptr;
  std::atomic<int> uses_{0};
  dist_status code_ = DIST_OK;
  ErrorRecord* error_ = nullptr;  // of a failure, where there was memory for it
  Word ended_;                    // 1
};

}  // namespace dist
