// SPDX-License-Identifier: Apache-2.0
// Pack: an exchange among members that do not wait for each other. Each says when its tensors may be touched;
// who comes last opens the pack, and then whoever has time does blocks of it: oneTBB's workers, members that
// wait or ask. Nobody who does blocks waits for anybody.
//
// Rounds 1, 2, ... use one pack again and again: members come to round s + 1 only after round s is complete.
//
//     arrive()   a member's tensors are ready; the last one prepares the exchange, then open() or abandon()
//     help()     does blocks while there are any
//     complete() all blocks of a round are done
//     close()    a member gives up: afterwards nobody touches its tensors for this round. If all had come,
//                blocks that are being done are waited for, and no further one is begun; if not, the pack
//                cannot open any more. Either way the pack serves again after reset() only
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/comm/group.hpp"
#include "core/cross_device/exchange.hpp"

namespace dist {

class Pack {
 public:
  // Up to this much the last to come does the work at once: a worker would hardly have woken.
  static constexpr std::size_t kAtOnceBytes = std::size_t{64} << 10;

  Pack() noexcept = default;
  Pack(const Pack&) = delete;
  Pack& operator=(const Pack&) = delete;

  // True: all `members` have come, and the caller is the one to open or abandon the round.
  bool arrive(uint32_t members) noexcept;
  bool all_arrived(uint32_t round) const noexcept {
    return round_of(tickets_.load(std::memory_order_acquire)) == round;
  }
  void open(uint32_t round, uint32_t members, const Exchange& exchange) noexcept;
  void abandon(uint32_t round, uint32_t members) noexcept;

  // Does blocks until there are none; the one who does the last one calls finished().
  template <class Finished>
  void help(Finished&& finished) noexcept {
    uint64_t ticket;
    while (take(&ticket)) {
      if (do_block(ticket)) finished();
    }
  }
  bool complete(uint32_t round) const noexcept {
    // acquire: for the release in do_block(), results.
    return static_cast<int32_t>(completed_.load(std::memory_order_acquire) - round) >= 0;
  }
  void close(uint32_t round, uint32_t members) noexcept;

  // Nobody is at it: ready for `round` + 1.
  void reset(uint32_t round) noexcept;

 private:
  // Which round is open, and how many of its blocks nobody has taken: one word says both, so that a look at a
  // round that is over never takes a block of the next.
  static constexpr uint32_t kClosed = UINT32_MAX;
  static constexpr uint32_t kUnknown = UINT32_MAX;
  static constexpr uint32_t kShut = uint32_t{1} << 31;
  static constexpr uint32_t round_of(uint64_t ticket) noexcept { return static_cast<uint32_t>(ticket >> 32); }
  static constexpr uint32_t left_of(uint64_t ticket) noexcept { return static_cast<uint32_t>(ticket); }
  static constexpr uint64_t ticket_of(uint32_t round, uint32_t left) noexcept {
    return uint64_t{round} << 32 | left;
  }

  bool take(uint64_t* out_ticket) noexcept;
  // True: it was the round's last.
  bool do_block(uint64_t ticket) noexcept;

  alignas(kApart) std::atomic<uint32_t> arrived_{0};  // and kShut: it will not open any more
  alignas(kApart) std::atomic<uint64_t> tickets_{ticket_of(0, kClosed)};
  const Exchange* exchange_ = nullptr;
  std::atomic<uint32_t> blocks_{0};
  alignas(kApart) std::atomic<uint32_t> done_{0};
  std::atomic<uint32_t> taken_{0};  // blocks that were begun before the round was closed
  std::atomic<uint32_t> completed_{0};
};

}  // namespace dist
