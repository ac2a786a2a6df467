// SPDX-License-Identifier: Apache-2.0
#include "core/run/budget.hpp"

namespace dist {

Budget::State Budget::state() const noexcept {
  const std::lock_guard lock(mutex_);
  return {queue_.threads(), queue_.used(), queue_.queued()};
}

bool Budget::ask(Ticket& ticket) noexcept {
  const std::lock_guard lock(mutex_);
  if (!ticket.queued() && !ticket.admitted()) queue_.arrive(ticket);
  if (ticket.admitted()) ticket.turn_.store(true, std::memory_order_relaxed);
  return ticket.admitted();
}

void Budget::leave(Ticket& ticket) noexcept {
  const std::lock_guard lock(mutex_);
  ticket.turn_.store(false, std::memory_order_relaxed);
  queue_.leave(ticket, tell);
}

void Budget::enter_inside(Party& party) noexcept {
  const std::lock_guard lock(mutex_);
  queue_.enter_inside(party, tell);
}

void Budget::leave_inside(Party& party) noexcept {
  const std::lock_guard lock(mutex_);
  queue_.leave_inside(party);
}

void BudgetStay::enter() noexcept {
  party_->retain();
  party_->enter_inside();
}

void BudgetStay::leave() noexcept {
  if (party_->memory().forked()) return;
  party_->leave_inside();
  party_->release();
}

// Called under the mutex, which the owner of a ticket also takes before the ticket is destroyed.
void Budget::tell(BudgetQueue::Entry& entry) noexcept {
  auto& ticket = static_cast<Ticket&>(entry);
  ticket.turn_.store(true, std::memory_order_release);
  ticket.bell_.advance();
}

}  // namespace dist
