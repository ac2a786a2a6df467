// SPDX-License-Identifier: Apache-2.0
#include "core/async/pack.hpp"

#include <algorithm>

#include "core/base/os/thread.hpp"
#include "core/kernel/fp_environment.hpp"

namespace dist {

bool Pack::arrive(uint32_t members) noexcept {
  // acq_rel: the last member to arrive sees what all members have brought. A member that gave up has set a
  // flag in the same word, so the count never equals `members`, and the pack stays shut.
  return arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members;
}

void Pack::open(uint32_t round, uint32_t members, int stripes, const Exchange& exchange) noexcept {
  exchange_ = &exchange;
  block_units_ = exchange.block_units();
  const std::size_t units = exchange.units();
  const std::size_t most = std::min<std::size_t>(static_cast<std::size_t>(stripes), kStripes);
  const std::size_t used = std::clamp<std::size_t>(units / kLeastStripeUnits, 1, most);
  uint32_t blocks = 0;
  for (std::size_t l = 0; l < used; ++l) {
    stripes_[l].units = part_of(units, used, l);
    blocks += blocks_of(stripes_[l]);
  }
  used_.store(static_cast<uint32_t>(used), std::memory_order_relaxed);
  blocks_.store(blocks, std::memory_order_relaxed);
  // relaxed: the release stores of the tickets publish all of these.
  done_.store(0, std::memory_order_relaxed);
  closed_.store(0, std::memory_order_relaxed);
  if (blocks == 0) completed_.store(round, std::memory_order_release);
  for (std::size_t l = used; l-- > 0;) {
    stripes_[l].tickets.store(ticket_of(round, blocks_of(stripes_[l])), std::memory_order_release);
  }
  // A close() that still sees the full count waits for the first stripe's ticket. A close() that sees the
  // lower count sees that ticket, too.
  arrived_.fetch_sub(members, std::memory_order_acq_rel);
}

void Pack::abandon(uint32_t round, uint32_t members) noexcept {
  blocks_.store(0, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  used_.store(1, std::memory_order_relaxed);
  closed_.store(kOneStripe, std::memory_order_relaxed);
  stripes_[0].tickets.store(ticket_of(round, kClosed), std::memory_order_release);
  arrived_.fetch_sub(members, std::memory_order_acq_rel);
}

void Pack::open_done(uint32_t round, uint32_t members) noexcept {
  stripes_[0].units = {0, 0};
  blocks_.store(0, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  used_.store(1, std::memory_order_relaxed);
  closed_.store(0, std::memory_order_relaxed);
  completed_.store(round, std::memory_order_release);
  stripes_[0].tickets.store(ticket_of(round, 0), std::memory_order_release);
  arrived_.fetch_sub(members, std::memory_order_acq_rel);
}

bool Pack::take(uint32_t stripe, uint64_t* out_ticket) noexcept {
  std::atomic<uint64_t>& tickets = stripes_[stripe].tickets;
  // acquire: pairs with open()'s release, even if other threads have taken blocks since.
  uint64_t ticket = tickets.load(std::memory_order_acquire);
  while (left_of(ticket) != kClosed && left_of(ticket) != 0) {
    if (tickets.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acquire)) {
      *out_ticket = ticket;
      return true;
    }
  }
  return false;
}

bool Pack::do_block(uint32_t l, uint64_t ticket, TaskList::Cursor& cursor) noexcept {
  // The round cannot end before this block is done, so its fields do not change.
  const uint32_t blocks = blocks_.load(std::memory_order_relaxed);
  {
    const FpEnvironment environment;
    const Stripe& stripe = stripes_[l];
    const Range block =
        block_of(stripe.units.end - stripe.units.begin, block_units_, blocks_of(stripe) - left_of(ticket));
    exchange_->run({stripe.units.begin + block.begin, stripe.units.begin + block.end}, cursor,
                   [] { return true; });
  }
  // acq_rel: the thread that does the last block sees the results of all blocks, and publishes them with
  // completed_. A close() sees the results of the blocks that it waits for.
  return done_.fetch_add(1, std::memory_order_acq_rel) + 1 == blocks;
}

void Pack::close(uint32_t round, uint32_t members) noexcept {
  // acq_rel, in one order with arrive(): either the last member to arrive sees kShut, or this call sees that
  // all members have arrived.
  uint32_t arrived = arrived_.load(std::memory_order_acquire);
  while ((arrived & kShut) == 0 && arrived != members &&
         !arrived_.compare_exchange_weak(arrived, arrived | kShut, std::memory_order_acq_rel)) {
  }
  std::atomic<uint64_t>& mark = stripes_[0].tickets;
  if (arrived == members) {
    // The last member is between arrive() and open(). It does not wait there, so this loop ends soon.
    while (round_of(mark.load(std::memory_order_acquire)) != round) yield_this_thread();
  }
  // If the pack was shut before it could open, nothing remains to be done.
  if (round_of(mark.load(std::memory_order_acquire)) != round) return;
  const uint32_t used = used_.load(std::memory_order_relaxed);
  for (uint32_t l = 0; l < used; ++l) {
    Stripe& stripe = stripes_[l];
    uint64_t ticket = stripe.tickets.load(std::memory_order_acquire);
    while (left_of(ticket) != kClosed) {
      if (!stripe.tickets.compare_exchange_weak(ticket, ticket_of(round, kClosed), std::memory_order_acq_rel))
        continue;
      closed_.fetch_add(kOneStripe + blocks_of(stripe) - left_of(ticket), std::memory_order_acq_rel);
      break;
    }
  }
  uint64_t closed;
  while ((closed = closed_.load(std::memory_order_acquire)) < used * kOneStripe) yield_this_thread();
  const auto taken = static_cast<uint32_t>(closed);
  while (done_.load(std::memory_order_acquire) < taken) yield_this_thread();
  // All blocks are done, but the thread that did the last one may not have ended the round yet. Waiting for
  // it ensures that it does not end a later round, and that all members agree on how this one ended.
  if (taken == 0 || taken != blocks_.load(std::memory_order_relaxed)) return;
  while (!complete(round)) yield_this_thread();
}

void Pack::reset(uint32_t round) noexcept {
  arrived_.store(0, std::memory_order_relaxed);
  completed_.store(round, std::memory_order_relaxed);
  for (Stripe& stripe : stripes_) stripe.tickets.store(ticket_of(round, kClosed), std::memory_order_release);
}

}  // namespace dist
