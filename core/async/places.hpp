// SPDX-License-Identifier: Apache-2.0
// Places: where a group's asynchronous collectives meet. Each collective under way has a place of its own.
//
// A chunk holds kPlaces places for consecutive numbers, and what each member brings to them. The chunks form
// a list in the order of numbers, and each member moves along it on its own. The first member that reaches
// the end of the list adds a chunk, which happens once in kPlaces collectives. A chunk can be reused once all
// its collectives are complete and all members have passed it. The most recently released chunk is reused
// first, because it is most likely to be in a cache. So a few collectives under way use few chunks, even if
// there were many earlier, and the cost of a collective does not depend on how many there are.
//
// A member may still hold a work whose chunk has been reused. The numbers in that chunk are then larger,
// which shows that the member's own collective is complete. Chunks are freed only between runs, when no
// member holds one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "core/async/async_memory.hpp"
#include "core/async/pack.hpp"
#include "core/base/memory.hpp"
#include "core/collective/call.hpp"
#include "core/collective/exchange.hpp"
#include "core/comm/call_descriptor.hpp"
#include "core/comm/signature.hpp"

namespace dist {

class Channel;
class Work;

class Places {
 public:
  static constexpr uint32_t kPlaces = 8;
  // The size accounted for a member's handle of one collective, including the copies in it. Copies of more
  // than kCopiedWords are accounted separately.
  static constexpr std::size_t kHandleBytes = 1024;
  static constexpr std::size_t kCopiedWords = 64;

  // One member's part in one collective.
  struct Brought {
    std::atomic<uint32_t> number{0};  // of the collective; written last, as the publication of the rest
    // The signature's digest. It is atomic, because peers may read it while the entry is being reused for a
    // later number.
    std::atomic<uint64_t> digest{0};
    Signature signature;
    CallDescriptor descriptor{};
    const Call* call = nullptr;  // in the member's handle
    Work* work = nullptr;        // that handle; used only by the member itself
  };
  class Chunk;
  struct Place {
    explicit Place(Channel& owner) noexcept : channel(owner) {}
    Channel& channel;
    Pack pack;
    std::optional<Exchange> exchange;
    std::atomic<std::size_t> copied{0};  // bytes accounted for copies of long lists
    // With several workers: all members of this worker have arrived, and the collective is being exchanged
    // with the other workers.
    std::atomic<bool> crossing{false};
    struct {
      Chunk* chunk;
      uint32_t number;
      Place* next;
    } waiting{};  // used while the collective waits in its CrossingLine
  };
  class Chunk {
   public:
    Place& place(uint32_t number) noexcept { return places_[number % kPlaces]; }
    Brought& brought(int rank, uint32_t number) noexcept {
      return brought_[static_cast<std::size_t>(number % kPlaces) * members_ + static_cast<std::size_t>(rank)];
    }
    // The descriptors of all members for a collective, by rank.
    const CallDescriptor* const* descriptors(uint32_t number) const noexcept {
      return descriptors_ + static_cast<std::size_t>(number % kPlaces) * members_;
    }

   private:
    friend class Places;
    std::atomic<Chunk*> next_{
        nullptr};         // the chunk with the following numbers; for a free chunk, another free chunk
    uint32_t first_ = 0;  // the first of its numbers
    std::size_t members_ = 0;
    Place* places_ = nullptr;  // this and the following arrays are in the chunk's own memory
    Brought* brought_ = nullptr;
    const CallDescriptor** descriptors_ = nullptr;
  };

  // Throws std::bad_alloc.
  Places(Memory& memory, AsyncMemory& bound, Channel& owner, int members);
  ~Places();
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // The size accounted for one collective: its place, and what all members bring, with their handles.
  static constexpr std::size_t bytes_of_one(int members) noexcept {
    return sizeof(Place) +
           static_cast<std::size_t>(members) * (sizeof(Brought) + sizeof(CallDescriptor*) + kHandleBytes);
  }

  // Called with no member inside and no collective under way. Numbers up to `latest`, a multiple of kPlaces,
  // then count as complete. Returns the chunk in which members continue.
  Chunk* begin_afresh(uint32_t latest) noexcept;
  // Called with no member inside. Frees the unused chunks.
  void let_go_of_spares() noexcept;

  // Returns the chunk after `last`. Returns NULL if its memory has to wait until *out_oldest, a work of this
  // member, is complete. Throws std::bad_alloc.
  Chunk* after(Chunk& last, int rank, Work** out_oldest);
  // The member's first work below number `below` that is not complete; NULL: none. The member has not arrived
  // at `below` yet.
  Work* oldest(int rank, uint32_t below) noexcept;

  AsyncMemory& bound() const noexcept { return bound_; }

 private:
  static constexpr uint32_t kLeastChunks = 2;  // each group may have these regardless of the limit

  std::size_t block_bytes() const noexcept;
  std::size_t counted_bytes() const noexcept { return kPlaces * bytes_of_one(static_cast<int>(members_)); }
  Chunk* make_chunk();
  void end_chunk(Chunk* chunk) noexcept;
  void set_first(Chunk& chunk, uint32_t first) noexcept;
  bool all_have_passed(Chunk& chunk) noexcept;
  void rest(Chunk* chunk) noexcept;
  void rest_the_passed() noexcept;
  Work* oldest_locked(int rank, uint32_t below) noexcept;

  Memory& memory_;
  AsyncMemory& bound_;
  Channel& owner_;
  const std::size_t members_;
  std::mutex mutex_;  // guards the ends of the list, and the unused chunks
  Chunk* front_ = nullptr;
  Chunk* resting_ = nullptr;
  uint32_t chunks_ = 0;
};

}  // namespace dist
