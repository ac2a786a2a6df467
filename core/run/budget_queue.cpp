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
  entry.previous_ = last_;
  (last_ == nullptr ? first_ : last_->next_) = &entry;
  last_ = &entry;
  ++queued_;
}

void BudgetQueue::take_out(Entry& entry) noexcept {
  (entry.previous_ == nullptr ? first_ : entry.previous_->next_) = entry.next_;
  (entry.next_ == nullptr ? last_ : entry.next_->previous_) = entry.previous_;
  entry.next_ = entry.previous_ = nullptr;
  --queued_;
}

void BudgetQueue::drop(Entry& entry) noexcept {
  if (entry.queued()) take_out(entry);
  used_ -= entry.has_;
  entry.state_ = Entry::State::kOut;
  entry.has_ = 0;
}

}  // namespace dist
