// SPDX-License-Identifier: Apache-2.0
#include "core/cross_device/pack.hpp"

#include "core/base/os/thread.hpp"
#include "core/kernel/fp_environment.hpp"

namespace dist {

bool Pack::arrive(uint32_t members) noexcept {
  // acq_rel: the last to come sees what all have brought. Who gave up before it did so in the same word: the
  // pack stays shut.
  return arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members;
}

void Pack::open(uint32_t round, uint32_t members, const Exchange& exchange) noexcept {
  exchange_ = &exchange;
  const std::size_t blocks = (exchange.units() + Exchange::kBlockUnits - 1) / Exchange::kBlockUnits;
  blocks_.store(static_cast<uint32_t>(blocks), std::memory_order_relaxed);
  // relaxed: tickets_ publishes all of it.
  done_.store(0, std::memory_order_relaxed);
  taken_.store(kUnknown, std::memory_order_relaxed);
  if (blocks == 0) completed_.store(round, std::memory_order_release);
  tickets_.store(ticket_of(round, static_cast<uint32_t>(blocks)), std::memory_order_release);
  // close() either sees the full count, and waits for the line above, or sees that line's round.
  arrived_.fetch_sub(members, std::memory_order_acq_rel);
}

void Pack::abandon(uint32_t round, uint32_t members) noexcept {
  blocks_.store(0, std::memory_order_relaxed);
  taken_.store(0, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  tickets_.store(ticket_of(round, kClosed), std::memory_order_release);
  arrived_.fetch_sub(members, std::memory_order_acq_rel);
}

bool Pack::take(uint64_t* out_ticket) noexcept {
  // acquire: for open()'s release; who takes a block in between carries it on.
  uint64_t ticket = tickets_.load(std::memory_order_acquire);
  while (left_of(ticket) != kClosed && left_of(ticket) != 0) {
    if (tickets_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acquire)) {
      *out_ticket = ticket;
      return true;
    }
  }
  return false;
}

bool Pack::do_block(uint64_t ticket) noexcept {
  // The round stays as it is until this block is done.
  const uint32_t blocks = blocks_.load(std::memory_order_relaxed);
  {
    const FpEnvironment environment;
    const uint32_t block = blocks - left_of(ticket);
    exchange_->run(block_of(exchange_->units(), Exchange::kBlockUnits, block), [] { return true; });
  }
  // acq_rel: the last one's release of completed_ covers all blocks; close() sees results of those it waits
  // for.
  if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 != blocks) return false;
  completed_.store(round_of(ticket), std::memory_order_release);
  return true;
}

void Pack::close(uint32_t round, uint32_t members) noexcept {
  // acq_rel, in one order with arrive(): the last member either finds the mark, or is found to have come.
  uint32_t arrived = arrived_.load(std::memory_order_acquire);
  while ((arrived & kShut) == 0 && arrived != members &&
         !arrived_.compare_exchange_weak(arrived, arrived | kShut, std::memory_order_acq_rel)) {
  }
  if (arrived == members) {
    // The last one is between arrive() and open(): it waits for nobody.
    while (round_of(tickets_.load(std::memory_order_acquire)) != round) yield_this_thread();
  }
  // Shut in time, or opened before that?
  uint64_t ticket = tickets_.load(std::memory_order_acquire);
  if (round_of(ticket) != round) return;
  while (left_of(ticket) != kClosed) {
    if (tickets_.compare_exchange_weak(ticket, ticket_of(round, kClosed), std::memory_order_acq_rel)) {
      taken_.store(blocks_.load(std::memory_order_relaxed) - left_of(ticket), std::memory_order_release);
      break;
    }
  }
  uint32_t taken;
  while ((taken = taken_.load(std::memory_order_acquire)) == kUnknown) yield_this_thread();
  while (done_.load(std::memory_order_acquire) < taken) yield_this_thread();
  // Who did the last block of all has yet to say so: it must not come into a later round, and members must
  // not differ on how this one ended.
  if (taken == 0 || taken != blocks_.load(std::memory_order_relaxed)) return;
  while (!complete(round)) yield_this_thread();
}

void Pack::reset(uint32_t round) noexcept {
  arrived_.store(0, std::memory_order_relaxed);
  completed_.store(round, std::memory_order_relaxed);
  tickets_.store(ticket_of(round, kClosed), std::memory_order_release);
}

}  // namespace dist
