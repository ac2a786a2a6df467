// SPDX-License-Identifier: Apache-2.0
// BudgetQueue: who has how many of a budget's threads, and who waits for some. A state machine: no thread, no lock, no clock,
// no memory.
//
// Those who wait stand in one line, and nobody overtakes the first: a run that wants many threads gets them, however many
// requests there are. With one exception, without which some would wait for themselves: somebody inside a function that
// libdist called, whose thread may be counted already, may wait for a strategy. While such an *insider* does, all that
// stands in line for that strategy passes, and takes none.
#pragma once

#include <algorithm>

namespace dist {

class BudgetQueue {
 public:
  // A strategy, whose runs and requests want threads.
  struct Party {
    int insiders = 0;
  };

  // A run or a request; a member of what waits, so that queueing takes no memory.
  class Entry {
   public:
    Entry(Party& party, int wants) noexcept : party_(party), wants_(wants) {}
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    bool queued() const noexcept { return state_ == State::kQueued; }
    bool admitted() const noexcept { return state_ == State::kAdmitted; }
    int has() const noexcept { return has_; }  // threads; 0 too where it passed
    int wants() const noexcept { return wants_; }

   private:
    friend class BudgetQueue;
    enum class State { kOut, kQueued, kAdmitted };

    Party& party_;
    const int wants_;
    State state_ = State::kOut;
    int has_ = 0;
    Entry* next_ = nullptr;
    Entry* previous_ = nullptr;
  };

  explicit BudgetQueue(int threads) noexcept : threads_(threads) {}
  BudgetQueue(const BudgetQueue&) = delete;
  BudgetQueue& operator=(const BudgetQueue&) = delete;

  // Afterwards it is admitted or queued. Whoever wants more than there is gets all.
  void arrive(Entry& entry) noexcept {
    if (entry.party_.insiders > 0) return admit(entry, 0);
    if (first_ == nullptr && fits(entry)) return admit(entry, share_of(entry));
    enqueue(entry);
  }
  // Takes it out, whether it is queued or admitted, or does nothing. told(entry) for each that is admitted by that.
  template <class Told>
  void leave(Entry& entry, Told&& told) noexcept {
    drop(entry);
    admit_first(told);
  }
  template <class Told>
  void enter_inside(Party& party, Told&& told) noexcept {
    if (++party.insiders > 1) return;  // none of its own has been queued since the first
    for (Entry* entry = first_; entry != nullptr;) {
      Entry& each = *entry;
      entry = each.next_;
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
    while (first_ != nullptr && fits(*first_)) {
      Entry& entry = *first_;
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
  Entry* first_ = nullptr;
  Entry* last_ = nullptr;
};

}  // namespace dist
