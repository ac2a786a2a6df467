// SPDX-License-Identifier: Apache-2.0
// The memory that two processes share for messages in one direction. The receiver creates and owns it; the
// sender maps it. A link has two such regions (link.hpp).
//
//     Control    how far the receiver has read, and whether it wants to be woken
//     Slot x 64  messages that the sender has offered but not sent
//     ring       frames: a header of 64 bytes, then the data, padded to 64 bytes
//
// Neither side trusts the other one's fields: it copies them before it checks them, and uses only the copy.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/net/transport.hpp"

namespace dist::shm {

inline constexpr std::size_t kLine = 64;

struct Control {
  // Written by the receiver: the numbers of bytes since the beginning that it has read from the ring, and of
  // the credit that it has returned. Both are updated rarely, so that their cache lines seldom move between
  // the CPUs.
  alignas(kLine) std::atomic<uint64_t> read{0};
  alignas(kLine) std::atomic<uint64_t> returned{0};
  // Set by the receiver if the sender must wake it after a change. The side that acts on it resets it.
  alignas(kLine) std::atomic<uint32_t> bell{0};
  // Set by the sender if it waits for room in the ring. The receiver resets it and then wakes the sender.
  alignas(kLine) std::atomic<uint32_t> wants_room{0};
  // Set by the receiver, as a hint: 1 + the CPU on which one of its threads has polled last; 0: unknown.
  alignas(kLine) std::atomic<uint32_t> cpu{0};
};

// The state of one offered message. The sender owns the slot before kOffered, and again after an end or
// kReleased.
enum class SlotState : uint32_t {
  kFree,
  kOffered,    // by the sender
  kGranted,    // by the receiver: the sender copies the data through the ring
  kPulling,    // by the receiver, which reads the data from the sender's memory
  kDone,       // by the receiver, like the next two: the message has been received
  kMisfit,     // the receive has another size
  kForgotten,  // no receive will ask for the message
  kCancelled,  // by the sender; a frame kDrop follows
  kRevoked,    // by the receiver, which no longer wants the data that are being copied; a frame kDrop follows
  kReleased    // by the receiver: the slot can be used again
};

struct alignas(kLine) Slot {
  std::atomic<SlotState> state{SlotState::kFree};
};

inline constexpr std::size_t kSlots = 64;

enum class FrameKind : uint32_t {
  kMessage = 1,  // sent ahead: its first `place` bytes follow, and the others have no meaning
  kOffer,        // of `bytes` bytes at `place` in the sender's memory
  kChunk,        // the next data of a granted message, from the offset `place` on
  kDrop          // the offer in this slot is void
};

struct Frame {
  FrameKind kind{};
  uint32_t slot = 0;
  uint64_t bytes = 0;
  uint64_t place = 0;
  MessageKey key = {};
};

// A header in the ring. `mark` is written last. It depends on the position and on a random number of the
// region, so that no earlier bytes at this place look like the next header.
struct alignas(kLine) Header {
  std::atomic<uint64_t> mark;
  Frame frame;
};
static_assert(sizeof(Header) == kLine && sizeof(MessageKey) == 32);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// The sizes of a region, which both sides compute from the credit.
struct Layout {
  explicit constexpr Layout(std::size_t credit) noexcept
      // A message that is sent ahead takes at most three times the bytes that it counts as. A quarter of the
      // bytes that the receiver has read may not have been reported yet.
      : ring((3 * credit + kChunkRoom + kControlRoom) / 3 * 4 / kLine * kLine + kLine) {}

  static constexpr std::size_t kMostCredit = std::size_t{64} << 10;
  static constexpr std::size_t kMostChunk = std::size_t{32} << 10;
  // Chunks are sent only while less than this is unread.
  static constexpr std::size_t kChunkRoom = 4 * kMostChunk;
  // Room for the frames kOffer and kDrop of all slots.
  static constexpr std::size_t kControlRoom = 2 * kSlots * kLine;
  static constexpr std::size_t kRingAt = sizeof(Control) + kSlots * sizeof(Slot);

  std::size_t ring;
  constexpr std::size_t read_step() const noexcept { return ring / 4; }
  constexpr std::size_t bytes() const noexcept { return (kRingAt + ring + 4095) / 4096 * 4096; }
};

// A view of a region that is mapped in this process.
class Region {
 public:
  Region() noexcept = default;
  Region(std::byte* at, const Layout& layout, uint64_t salt) noexcept
      : at_(at), ring_(layout.ring), salt_(salt) {}

  Control& control() const noexcept { return *reinterpret_cast<Control*>(at_); }
  Slot& slot(std::size_t index) const noexcept {
    return reinterpret_cast<Slot*>(at_ + sizeof(Control))[index];
  }
  std::size_t ring_bytes() const noexcept { return ring_; }
  // Positions count all bytes since the beginning.
  Header& header(std::size_t offset) const noexcept {
    return *reinterpret_cast<Header*>(at_ + Layout::kRingAt + offset);
  }
  std::byte* bytes_at(std::size_t offset) const noexcept { return at_ + Layout::kRingAt + offset; }
  uint64_t mark_of(uint64_t position) const noexcept { return (position + 1) ^ salt_; }

 private:
  std::byte* at_ = nullptr;
  std::size_t ring_ = 0;
  uint64_t salt_ = 0;
};

constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + kLine - 1) / kLine * kLine; }

}  // namespace dist::shm
