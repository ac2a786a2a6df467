// SPDX-License-Identifier: Apache-2.0
// The payload of a member: the bytes that describe what it brings to a collective over several workers.
//
//     number of tensor lists (0: none), flags for splits and weights, destination and source
//     part and whole of each tensor along the axis, if the collective cuts or joins        2n
//     starts of the splits, if given                                                       members + 1
//     weights, if given                                                                    one for each list
//     elements of each list's tensors, dense, each tensor aligned to 64 bytes, if the payload is complete
//
// Numbers are encoded as in wire.hpp. If a call has none of these properties, the payload consists of the
// elements only, or is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.hpp"
#include "core/collective/call.hpp"
#include "core/comm/call_descriptor.hpp"
#include "core/comm/worker_round.hpp"

namespace dist {

// Allocates objects consecutively from memory of a known size. Without memory, it only counts.
class Room {
 public:
  explicit Room(std::byte* memory = nullptr) noexcept : memory_(memory) {}
  template <class T>
  T* take(std::size_t count) noexcept {
    static_assert(alignof(T) <= alignof(int64_t));
    const std::size_t at = used_;
    used_ += (count * sizeof(T) + sizeof(int64_t) - 1) / sizeof(int64_t) * sizeof(int64_t);
    return memory_ != nullptr ? reinterpret_cast<T*>(memory_ + at) : nullptr;
  }
  bool there() const noexcept { return memory_ != nullptr; }
  std::size_t used() const noexcept { return used_; }

 private:
  std::byte* const memory_;
  std::size_t used_ = 0;
};

// Encodes what the member brings, including the elements if payload.complete is set.
Status pack_payload(const Call& call, const CallDescriptor& descriptor, int num_members,
                    Payload& payload) noexcept;

// Decodes another member's payload, for a call whose signature agrees with this one.
class PayloadReader {
 public:
  PayloadReader(const Call& call, int num_members, bool complete) noexcept
      : call_(call), num_members_(num_members), complete_(complete) {}

  // Decodes the descriptor of member `rank`. Its lists are allocated from the room, and its elements stay in
  // the payload. If the room has no memory, this counts the required size. Returns false if the payload is
  // malformed.
  bool read(int rank, std::span<const std::byte> payload, Room& room, CallDescriptor* out) const noexcept;

 private:
  const Call& call_;
  const int num_members_;
  const bool complete_;
};

}  // namespace dist
