// SPDX-License-Identifier: Apache-2.0
// Pack: an exchange among members that do not wait for each other. Each member announces when its tensors may
// be touched, and the last one opens the pack. Then any thread that has time processes blocks of it: oneTBB
// threads, and members that wait or test.
//
// Invariant: a thread never waits while it processes blocks.
//
// The blocks are divided into as many stripes as members can run at the same time. Each stripe is a range
// that is processed in order. A thread begins with the same stripe in every round, so that its data may still
// be in its core's cache.
//
// A pack is used for rounds 1, 2, ... Members arrive at round s + 1 only after round s is complete.
//
//     arrive()   a member's tensors are ready; the last member prepares the exchange and calls open() or
//                abandon()
//     help()     processes blocks until none are left
//     complete() all blocks of a round are done
//     close()    a member gives up; afterwards no thread touches its tensors in this round. If all members
//                had arrived, no further block is started, and close() waits for the blocks in progress.
//                Otherwise the pack can no longer open. In both cases the pack must be reset() before it is
//                used again
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/collective/exchange.hpp"
#include "core/comm/group.hpp"

namespace dist {

class Pack {
 public:
  // Up to this many bytes, the last member to arrive does the work at once, because waking a oneTBB thread
  // would take longer.
  static constexpr std::size_t kAtOnceBytes = std::size_t{64} << 10;

  Pack() noexcept = default;
  Pack(const Pack&) = delete;
  Pack& operator=(const Pack&) = delete;

  // Returns true if all `members` have arrived; then the caller must open or abandon the round.
  bool arrive(uint32_t members) noexcept;
  void open(uint32_t round, uint32_t members, int stripes, const Exchange& exchange) noexcept;
  void abandon(uint32_t round, uint32_t members) noexcept;
  // Replaces open() if all of the work has been done elsewhere.
  void open_done(uint32_t round, uint32_t members) noexcept;

  // Processes blocks until none are left, beginning with those of stripe `first` (any number). The thread
  // that completes the last block calls ending(), while the pack still belongs to the round, and then
  // finished().
  template <class Ending, class Finished>
  void help(uint32_t first, Ending&& ending, Finished&& finished) noexcept {
    for (uint32_t turn = 0; turn < kStripes; ++turn) {
      const uint32_t stripe = (first + turn) % kStripes;
      uint64_t ticket;
      uint32_t round = 0;
      TaskList::Cursor cursor;
      while (take(stripe, &ticket)) {
        if (std::exchange(round, round_of(ticket)) != round_of(ticket)) cursor = {};
        if (!do_block(stripe, ticket, cursor)) continue;
        ending();
        // release: publishes the results of all blocks, which became visible to this thread in do_block().
        completed_.store(round_of(ticket), std::memory_order_release);
        finished();
      }
    }
  }
  template <class Finished>
  void help(uint32_t first, Finished&& finished) noexcept {
    help(
        first, [] {}, finished);
  }
  bool complete(uint32_t round) const noexcept {
    // acquire: pairs with the release in help(), which publishes the results.
    return static_cast<int32_t>(completed_.load(std::memory_order_acquire) - round) >= 0;
  }
  void close(uint32_t round, uint32_t members) noexcept;

  // Prepares the pack for `round` + 1. No thread may be using it.
  void reset(uint32_t round) noexcept;

 private:
  static constexpr uint32_t kStripes = 4;  // enough that helping threads rarely share one; a power of two
  static constexpr std::size_t kLeastStripeUnits = (std::size_t{4} << 10) / kUnitBytes;

  // A ticket holds the open round and the number of free blocks in the stripe. Both are in one word: a thread
  // that has read the ticket of an earlier round cannot take a block of the next one.
  static constexpr uint32_t kClosed = UINT32_MAX;
  static constexpr uint32_t kShut = uint32_t{1} << 31;
  static constexpr uint32_t round_of(uint64_t ticket) noexcept { return static_cast<uint32_t>(ticket >> 32); }
  static constexpr uint32_t left_of(uint64_t ticket) noexcept { return static_cast<uint32_t>(ticket); }
  static constexpr uint64_t ticket_of(uint32_t round, uint32_t left) noexcept {
    return uint64_t{round} << 32 | left;
  }
  // closed_ holds two counts: how many stripes are closed, and how many of their blocks had been taken.
  static constexpr uint64_t kOneStripe = uint64_t{1} << 32;

  struct alignas(kApart) Stripe {
    std::atomic<uint64_t> tickets{ticket_of(0, kClosed)};
    Range units{0, 0};
  };

  uint32_t blocks_of(const Stripe& stripe) const noexcept {
    return static_cast<uint32_t>((stripe.units.end - stripe.units.begin + block_units_ - 1) / block_units_);
  }
  bool take(uint32_t stripe, uint64_t* out_ticket) noexcept;
  // Returns true if it was the last block of the round; then the caller must end the round.
  bool do_block(uint32_t stripe, uint64_t ticket, TaskList::Cursor& cursor) noexcept;

  alignas(kApart) std::atomic<uint32_t> arrived_{0};  // with kShut: it can no longer open
  alignas(kApart) const Exchange* exchange_ = nullptr;
  std::size_t block_units_ = Exchange::kBlockUnits;
  std::atomic<uint32_t> blocks_{0};
  std::atomic<uint32_t> used_{0};  // number of stripes in this round; the others have no blocks
  Stripe stripes_[kStripes];       // the first stripe's ticket opens the round
  alignas(kApart) std::atomic<uint32_t> done_{0};
  std::atomic<uint64_t> closed_{0};
  std::atomic<uint32_t> completed_{0};
};

}  // namespace dist
