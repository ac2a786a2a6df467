// SPDX-License-Identifier: Apache-2.0
// MemberState: what a group stores for one member. The parts that peers read begin cache lines of their own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"
#include "core/comm/apart.hpp"
#include "core/comm/signature.hpp"
#include "core/comm/slot.hpp"
#include "core/comm/word.hpp"

namespace dist {

template <class Sync>
struct alignas(kApart) BasicMemberState {
  template <class T>
  using Atomic = typename Sync::template Atomic<T>;
  static constexpr int64_t kNotYet = -1;
  struct alignas(kApart) Ticket {
    Atomic<std::size_t> next{0};
  };

  BasicSlot<Sync> slots[2];
  Ticket tickets[2];
  alignas(kApart) BasicWord<Sync> done;         // the latest round whose buffers it is done with
  alignas(kApart) Atomic<uint32_t> entered{0};  // the latest round whose buffers it may touch
  uint32_t round = 0;                           // for the member itself; peers read its slots instead
  Beside beside;
  int64_t arrived_ns = kNotYet;  // when it first read the clock in this round
  Patience patience;
  Atomic<uint32_t> left{0};  // the latest run that it has left
  Signature signatures[2];
  Signature departure = dist::departure();  // of that run
  ErrorRecord failure;                      // why the member failed in that run, if it did
  BasicApart<Sync> apart;

  // Whether the member is done with the buffers of a round. `done` may already hold a later round: a member
  // that gives up at the next round does not wait until all peers have seen that it was done with this one.
  bool is_done(uint32_t at) const noexcept {
    // seq_cst: a load of the race "sleep". As an acquire load it makes the member's writes to buffers
    // visible.
    return static_cast<int32_t>(done.value.load(std::memory_order_seq_cst) - at) >= 0;
  }
};

}  // namespace dist
