// SPDX-License-Identifier: Apache-2.0
// Budget: how many threads of several strategies work at the same time (budget_queue.hpp). A run or a request takes its
// threads last, when it has its replicas and the lock of runs, and gives them back first. Only what begins outside all
// functions that libdist calls waits for some, and has nothing then but its own strategy, which insiders let pass. So
// nobody who waits here is waited for by somebody who has threads.
#pragma once

#include <atomic>
#include <mutex>

#include "core/base/memory.hpp"
#include "core/comm/word.hpp"
#include "core/run/budget_queue.hpp"

namespace dist {

class Budget final : public Counted {
 public:
  using Party = BudgetQueue::Party;
  // One that wants threads, again and again. The bell is rung when it is admitted after a wait.
  class Ticket final : public BudgetQueue::Entry {
   public:
    Ticket(Party& party, int wants, Word& bell) noexcept : Entry(party, wants), bell_(bell) {}
    // Any thread; acquire: what was done with the threads before.
    bool has_turn() const noexcept { return turn_.load(std::memory_order_acquire); }

   private:
    friend class Budget;
    Word& bell_;
    std::atomic<bool> turn_{false};
  };

  Budget(Memory& memory, int threads) noexcept : Counted(memory), queue_(threads) {}

  // What there is, what of it is in use, and who waits.
  struct State {
    int threads, used, waiting;
  };
  State state() const noexcept;

  // True: it has its threads. One that has them, or waits, may ask again.
  bool ask(Ticket& ticket) noexcept;
  // It wants nothing more, and has nothing; also where that was so already.
  void leave(Ticket& ticket) noexcept;
  void enter_inside(Party& party) noexcept;
  void leave_inside(Party& party) noexcept;

 private:
  static void tell(BudgetQueue::Entry& entry) noexcept;

  mutable std::mutex mutex_;
  BudgetQueue queue_;
};

// An insider's wait for a strategy, to the end of the scope. NULL: nothing.
class BudgetStay {
 public:
  BudgetStay(Budget* budget, Budget::Party* party) noexcept : budget_(budget), party_(party) {
    if (budget_ != nullptr) [[unlikely]]
      budget_->enter_inside(*party_);
  }
  ~BudgetStay() {
    if (budget_ != nullptr && !budget_->memory().forked()) [[unlikely]]
      budget_->leave_inside(*party_);
  }
  BudgetStay(const BudgetStay&) = delete;
  BudgetStay& operator=(const BudgetStay&) = delete;

 private:
  Budget* const budget_;
  Budget::Party* const party_;
};

}  // namespace dist
