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

// A strategy with a budget, as which it stands in line. Who waits for it may go on when it is gone.
class BudgetParty final : public Counted {
 public:
  BudgetParty(Memory& memory, Budget& budget) noexcept
      : Counted(memory), budget_(Ref<Budget>::share(&budget)) {}
  Budget& budget() const noexcept { return *budget_; }
  Budget::Party& place() noexcept { return place_; }
  void enter_inside() noexcept { budget_->enter_inside(place_); }
  void leave_inside() noexcept { budget_->leave_inside(place_); }

 private:
  const Ref<Budget> budget_;
  Budget::Party place_;
};

// An insider's wait for a strategy, to the end of the scope. NULL: nothing.
class BudgetStay {
 public:
  explicit BudgetStay(BudgetParty* party) noexcept : party_(party) {
    if (party_ != nullptr) [[unlikely]]
      enter();
  }
  ~BudgetStay() {
    if (party_ != nullptr) [[unlikely]]
      leave();
  }
  BudgetStay(const BudgetStay&) = delete;
  BudgetStay& operator=(const BudgetStay&) = delete;

 private:
  void enter() noexcept;
  void leave() noexcept;

  BudgetParty* const party_;
};

}  // namespace dist
