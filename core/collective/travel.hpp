// SPDX-License-Identifier: Apache-2.0
// Travel: small tensors are copied into or beside the slots, so that the members meet only once. Each member
// computes its result from the copies of what its peers bring, so no member has to wait until its peers are
// done with its buffers.
//
// An all_reduce of a few tensors brings their elements one after the other, preceded by the addresses of its
// outputs: reading a peer's list of tensors would move more cache lines between cores.
//
// Parts may have sizes that peers do not know before they meet. So each member decides on its own whether its
// tensors travel, and publishes its descriptor as well. If some member's tensors stay, or all of them
// together do not fit, all members use the algorithm for large tensors instead.
//
// Invariant: all members see the same slots and so make the same decision.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/collective/collectives.hpp"

namespace dist {

class Travel {
 public:
  // `call` must be a validated call of a member in a group with a CPU for every member.
  Travel(const Member& member, const Call& call) noexcept;

  // Copies the member's tensors beside its slot if they can travel, and records in the slot whether they do.
  // Also writes the member's descriptor.
  void put() const noexcept;
  // Called before each load of a peer's slot, like Group::fetch_bytes().
  void fetch(int peer) const noexcept {
    if (bytes_ >= 0 && call_.gives(peer))
      group_.fetch_bytes(me_, peer, beside(is_list() ? static_cast<std::size_t>(bytes_) : call_.bytes));
  }
  // Call this when all members have arrived. Returns true if all tensors travel, so that the members use
  // take().
  bool all_travel() const noexcept;
  // A member with a buffer that overlaps this member's output although it must not; -1: none.
  int overlapping() const noexcept;
  // Writes this member's result.
  void take() const noexcept;

 private:
  static constexpr int kFew = 4;
  static constexpr int kMostOfLists = 8;  // members
  static constexpr std::size_t kMostTensors = 8;
  static constexpr std::size_t kAlign = 16;
  // A size for which Group::outgoing_bytes() uses the eager payload, because the slot holds the descriptor.
  static constexpr std::size_t beside(std::size_t bytes) noexcept {
    return std::max(bytes, Slot::kInlineBytes + 1);
  }
  bool can_travel() const noexcept;
  std::size_t most_bytes() const noexcept;
  bool is_list() const noexcept { return call_.n > 1; }
  // The layout of the bytes that a member brings for a list: where its first tensor begins, and how much
  // space each tensor takes.
  std::size_t first_place() const noexcept {
    return (call_.n * sizeof(std::byte*) + kAlign - 1) / kAlign * kAlign;
  }
  std::size_t room_of(std::size_t t) const noexcept { return (sizes_[t] + kAlign - 1) / kAlign * kAlign; }
  std::byte* output_of(int rank, std::size_t t) const noexcept;
  bool list_overlaps() const noexcept;
  void put_list() const noexcept;
  void take_list() const noexcept;
  const dist_tensor& like() const noexcept { return call_.in != nullptr ? call_.in[0] : call_.out[0]; }
  const Slot& slot(int rank) const noexcept { return group_.slot(me_, rank); }
  const std::byte* brought_by(int rank) const noexcept { return group_.bytes(me_, rank, beside(0)); }
  int harmed_by(int rank) const noexcept;
  bool shared() const noexcept;
  bool parts_fit() const noexcept;
  bool own_place(int rank, std::size_t before) const noexcept;
  void fold(std::size_t count, std::size_t from, std::size_t bytes) const noexcept;
  void take_whole() const noexcept;
  void take_part() const noexcept;

  Group& group_;
  const Call& call_;
  const int me_;
  const int size_;
  std::ptrdiff_t bytes_;             // that this member brings, or Slot::kStays
  std::size_t sizes_[kMostTensors];  // of a list's tensors, in bytes
};

}  // namespace dist
