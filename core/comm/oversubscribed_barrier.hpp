// SPDX-License-Identifier: Apache-2.0
// The barrier of an oversubscribed group. Each member counts itself in and out, and the last one wakes all
// others.
//
// Invariant: the cost of a round for a member does not depend on the number of members. Only the last member
// to arrive reads all slots. The first one stores the round's digest here, and each other member compares its
// own digest with that one, so a member that made a different call detects this by itself.
//
// Each increment of a counter is ordered after the earlier ones:
//
//     came   the last member to arrive sees all slots
//     out    the last member to leave sees everything that the others did to buffers
#pragma once

#include <cstdint>

#include "core/comm/word.hpp"

namespace dist {

template <class Sync>
class BasicOversubscribedBarrier {
 public:
  using Word = BasicWord<Sync>;
  enum class Come {
    kEarly,  // others are missing: wait for released()
    kLast,
    kForSomethingElse  // its digest differs from the first member's; the member is not counted
  };

  // Called by a member that has published its slot.
  Come come(uint32_t round, uint64_t digest, int size) noexcept {
    uint64_t common = kNone;
    Atomic<uint64_t>& first = digests_[round & 1];
    // acq_rel: a member that differs sees the slot of the first one, and reports on it.
    if (!first.compare_exchange_strong(common, mark(digest), std::memory_order_acq_rel) &&
        common != mark(digest)) {
      return Come::kForSomethingElse;
    }
    if (came_.fetch_add(1, std::memory_order_acq_rel) + 1 != static_cast<uint32_t>(size)) return Come::kEarly;
    // relaxed: no member reaches the next round before `released` is published, which happens later. No
    // member compares with the previous round's digest any more.
    came_.store(0, std::memory_order_relaxed);
    digests_[(round + 1) & 1].store(kNone, std::memory_order_relaxed);
    return Come::kLast;
  }
  // Called by the last member to let the others continue. `shares`: the work is left to all of them.
  void release(uint32_t round, bool shares, const WaitPolicy& policy) noexcept {
    // Each member reads `shares_` before it reaches the next round.
    Sync::writing(shares_);
    shares_ = shares;
    released_.publish(round, policy);
  }
  bool shares() const noexcept {
    Sync::reading(shares_);
    return shares_;
  }
  Word& released() noexcept { return released_; }

  // Called by a member that is done with all buffers. Returns true if it is the last one.
  bool go_out(uint32_t round, int size, const WaitPolicy& policy) noexcept {
    if (out_.fetch_add(1, std::memory_order_acq_rel) + 1 != static_cast<uint32_t>(size)) return false;
    // relaxed: no member gets here in the next round before all members have arrived there. This member
    // arrives there later, and its arrival publishes the store.
    out_.store(0, std::memory_order_relaxed);
    all_out_.publish(round, policy);
    return true;
  }
  Word& all_out() noexcept { return all_out_; }

  // Called with no member inside, after a round that failed.
  void clear() noexcept {
    came_.store(0, std::memory_order_relaxed);
    out_.store(0, std::memory_order_relaxed);
    for (Atomic<uint64_t>& digest : digests_) digest.store(kNone, std::memory_order_relaxed);
  }

 private:
  template <class T>
  using Atomic = typename Sync::template Atomic<T>;
  static constexpr uint64_t kNone = 0;
  // Sets a bit, so that no digest equals kNone. If two digests differ only in this bit, the last member
  // detects the difference, because it compares the slots.
  static constexpr uint64_t mark(uint64_t digest) noexcept { return digest | 1; }

  Atomic<uint32_t> came_{0};
  Atomic<uint32_t> out_{0};
  Atomic<uint64_t> digests_[2]{Atomic<uint64_t>{0}, Atomic<uint64_t>{0}};  // by the round's parity
  bool shares_ = false;
  alignas(128) Word released_;  // the latest complete round
  alignas(128) Word all_out_;   // the latest round whose members are all done with all buffers
};

}  // namespace dist
