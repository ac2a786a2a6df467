// SPDX-License-Identifier: Apache-2.0
// HostAdmission: what host threads must have before they open a run: the replicas, if an idle handler uses them, and the
// threads of a budget. All functions must be called under the run lock.
//
// | state | entered by                                              | left by                                            |
// |-------|---------------------------------------------------------|----------------------------------------------------|
// | none  | withdraw(), give_threads_back() and give_replicas_back()| ask()                                              |
// | asked | ask() that returned false                               | ask(), withdraw()                                  |
// | has   | ask() that returned true                                | withdraw(), the two functions that give back       |
#pragma once

#include <atomic>
#include <utility>

#include "core/run/budget_share.hpp"
#include "core/run/idle_handler.hpp"

namespace dist {

class HostAdmission {
 public:
  // `handler`: what uses the replicas between runs; NULL: nothing yet.
  HostAdmission(BudgetShare& budget, const std::atomic<IdleHandler*>& handler) noexcept
      : budget_(budget), handler_(handler) {}

  // Whether a run may be opened. If not, asks for what is missing.
  bool ask() noexcept {
    if (IdleHandler* const handler = handler_now(); handler != nullptr && lender_ == nullptr) {
      if (!handler->ask_to_enter()) return false;
      lender_ = handler;
    }
    return budget_.ask();
  }
  // No thread wants to open a run any more.
  void withdraw() noexcept {
    budget_.give_back();
    if (IdleHandler* const lender = std::exchange(lender_, nullptr); lender != nullptr) {
      lender->give_back();
    } else if (IdleHandler* const handler = handler_now(); handler != nullptr) {
      handler->no_longer_asks();
    }
  }
  // The run was given up: its threads no longer count.
  void give_threads_back() noexcept { budget_.give_back(); }
  // The run has ended.
  void give_replicas_back() noexcept {
    if (IdleHandler* const lender = std::exchange(lender_, nullptr); lender != nullptr) lender->give_back();
  }

 private:
  // acquire: makes the idle handler's state visible.
  IdleHandler* handler_now() const noexcept { return handler_.load(std::memory_order_acquire); }

  BudgetShare& budget_;
  const std::atomic<IdleHandler*>& handler_;
  IdleHandler* lender_ = nullptr;  // lent the replicas to the open run or to the next one; NULL: none
};

}  // namespace dist
