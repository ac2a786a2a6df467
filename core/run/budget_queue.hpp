// SPDX-License-Identifier: Apache-2.0
// The queue of a budget: how many threads each entry has, and which entries wait. A state machine without
// threads, locks, clock or allocation, so that it can be tested exhaustively; budget.hpp adds the mutex and
// the wake-ups.
//
// The queue is strictly FIFO: nothing overtakes its first entry, so a run that needs many threads gets them
// even under a steady load of requests. The exception prevents self-deadlock. While an *insider* (a caller
// inside a callback, whose thread may be counted already) waits for a strategy, every entry of that strategy
// is admitted with 0 threads.
#pragma once

#include <algorithm>

#include "core/base/intrusive_list.hpp"

namespace dist {

class BudgetQueue {
 public:
  // A strategy whose runs and requests use the budget.
  struct Party {
    int insiders = 0;
  };

  // A run or a request. It is linked into the queue itself, so that queueing allocates nothing.
  class Entry : private ListLink<BudgetQueue> {
   public:
    Entry(Party& party, int wants) noexcept : party_(party), wants_(wants) {}
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    bool queued() const noexcept { return state_ == State::kQueued; }
    bool admitted() const noexcept { return state_ == State::kAdmitted; }
    int has() const noexcept { return has_; }  // threads; also 0 if it was admitted because of an insider
    int wants() const noexcept { return wants_; }

   private:
    friend class BudgetQueue;
    friend class IntrusiveList<Entry, BudgetQueue>;
    enum class State { kOut, kQueued, kAdmitted };

    Party& party_;
    const int wants_;
    State state_ = State::kOut;
    int has_ = 0;
  };

  explicit BudgetQueue(int threads) noexcept : threads_(threads) {}
  BudgetQueue(const BudgetQueue&) = delete;
  BudgetQueue& operator=(const BudgetQueue&) = delete;

  // Admits or queues the entry. An entry that wants more threads than the budget has gets all of them.
  void arrive(Entry& entry) noexcept {
    if (entry.party_.insiders > 0) return admit(entry, 0);
    if (entries_.empty() && fits(entry)) return admit(entry, share_of(entry));
    enqueue(entry);
  }
  // Removes the entry, whether it is queued or admitted, or does nothing. Calls told(entry) for each entry
  // that is admitted as a result.
  template <class Told>
  void leave(Entry& entry, Told&& told) noexcept {
    drop(entry);
    admit_first(told);
  }
  template <class Told>
  void enter_inside(Party& party, Told&& told) noexcept {
    // the first insider has admitted all of the party's entries, and none was queued since
    if (++party.insiders > 1) return;
    for (Entry& each : entries_) {
      if (&each.party_ != &party) continue;
      take_out(each);
      admit(each, 0);
      told(each);
    }
    admit_first(told);
  }
  void leave_inside(Party& party) noexcept { --party.insiders; }

  int threads() const noexcept { return threads_; }
  int used() const noexcept { return used_; }
  int queued() const noexcept { return queued_; }

 private:
  int share_of(const Entry& entry) const noexcept { return std::min(entry.wants_, threads_); }
  bool fits(const Entry& entry) const noexcept { return used_ + share_of(entry) <= threads_; }
  template <class Told>
  void admit_first(Told&& told) noexcept {
    while (!entries_.empty() && fits(*entries_.first())) {
      Entry& entry = *entries_.first();
      take_out(entry);
      admit(entry, share_of(entry));
      told(entry);
    }
  }
  void admit(Entry& entry, int threads) noexcept;
  void enqueue(Entry& entry) noexcept;
  void take_out(Entry& entry) noexcept;
  void drop(Entry& entry) noexcept;

  const int threads_;
  int used_ = 0;
  int queued_ = 0;
  IntrusiveList<Entry, BudgetQueue> entries_;
};

}  // namespace dist
