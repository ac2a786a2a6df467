// SPDX-License-Identifier: Apache-2.0
#include "core/run/budget_queue.hpp"

namespace dist {

void BudgetQueue::admit(Entry& entry, int threads) noexcept {
  entry.state_ = Entry::State::kAdmitted;
  entry.has_ = threads;
  used_ += threads;
}

void BudgetQueue::enqueue(Entry& entry) noexcept {
  entry.state_ = Entry::State::kQueued;
  entries_.push_back(entry);
  ++queued_;
}

void BudgetQueue::take_out(Entry& entry) noexcept {
  entries_.remove(entry);
  --queued_;
}

void BudgetQueue::drop(Entry& entry) noexcept {
  if (entry.queued()) take_out(entry);
  used_ -= entry.has_;
  entry.state_ = Entry::State::kOut;
  entry.has_ = 0;
}

}  // namespace dist
