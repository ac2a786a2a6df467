// SPDX-License-Identifier: Apache-2.0
// Limits how many threads several strategies use at the same time. The queue itself is in budget_queue.hpp.
//
// A run or a request acquires its threads last, once it has its replicas and its strategy's run lock, and
// releases them first. Only calls made from outside every callback wait for threads, and such a waiter holds
// nothing but its own strategy.
//
// Invariant: whoever holds threads never waits for a queued entry. An *insider*, that is a call from inside a
// callback whose thread may already be counted, can wait for a strategy; while it does, all entries queued
// for that strategy are admitted without threads. So the queue always drains, and budgets cannot deadlock.
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
  // A run or a request that asks for threads; reusable. A ticket that had to wait rings its bell when it is
  // admitted.
  class Ticket final : public BudgetQueue::Entry {
   public:
    Ticket(Party& party, int wants, Word& bell) noexcept : Entry(party, wants), bell_(bell) {}
    // Callable from any thread. The acquire makes visible what the previous holders of the threads wrote.
    bool has_turn() const noexcept { return turn_.load(std::memory_order_acquire); }

   private:
    friend class Budget;
    Word& bell_;
    std::atomic<bool> turn_{false};
  };

  Budget(Memory& memory, int threads) noexcept : Counted(memory), queue_(threads) {}

  // The size of the budget, the threads in use, and the number of queued tickets.
  struct State {
    int threads, used, waiting;
  };
  State state() const noexcept;

  // Returns true if the ticket has its threads. May be called again while the ticket waits or has them.
  bool ask(Ticket& ticket) noexcept;
  // Withdraws the ticket or releases its threads. Does nothing if it has neither.
  void leave(Ticket& ticket) noexcept;
  void enter_inside(Party& party) noexcept;
  void leave_inside(Party& party) noexcept;

 private:
  static void tell(BudgetQueue::Entry& entry) noexcept;

  mutable std::mutex mutex_;
  BudgetQueue queue_;
};

// A strategy as a user of its budget. Counted, because a caller that waits for the strategy may outlive it.
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

// Marks the calling thread as an insider of `party` until the end of the scope. NULL has no effect.
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
