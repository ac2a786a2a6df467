// SPDX-License-Identifier: Apache-2.0
// Places: where a group's asynchronous collectives meet, each in a place of its own, as many as are under
// way.
//
// A chunk has the places of kPlaces numbers in a row, and what each member brings to them. Chunks are a list
// in the order of numbers. Members go along it, each at its own pace; who comes to its end first adds a
// chunk, once every kPlaces collectives. A chunk whose collectives are complete, and which all members have
// passed, waits to serve again, the latest first, as its lines are in a cache. So few in flight stay in few
// chunks, however many there once were, and what one costs does not depend on how many there are.
//
// Who still holds a work of a chunk that serves again sees larger numbers there, which say that its own is
// complete. Chunks end between runs only, when nobody holds any.
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
#include "core/comm/offer.hpp"
#include "core/comm/signature.hpp"

namespace dist {

class Channel;
class Work;

class Places {
 public:
  static constexpr uint32_t kPlaces = 8;
  // What is counted for a member's handle of one collective, the copies in it among them. Longer lists are
  // counted one by one.
  static constexpr std::size_t kHandleBytes = 1024;
  static constexpr std::size_t kCopiedWords = 64;

  // What one member brings to one collective.
  struct Brought {
    std::atomic<uint32_t> number{0};  // which collective it is about; published last
    // The signature's, for peers that do not know which number it has by then.
    std::atomic<uint64_t> digest{0};
    Signature signature;
    Offer offer{};
    const Call* call = nullptr;  // in the member's handle
    Work* work = nullptr;        // that handle; the member's own
  };
  struct Place {
    explicit Place(Channel& owner) noexcept : channel(owner) {}
    Channel& channel;
    Pack pack;
    std::optional<Exchange> exchange;
    std::atomic<std::size_t> copied{0};  // counted for the descriptions of long lists
  };
  class Chunk {
   public:
    Place& place(uint32_t number) noexcept { return places_[number % kPlaces]; }
    Brought& brought(int rank, uint32_t number) noexcept {
      return brought_[static_cast<std::size_t>(number % kPlaces) * members_ + static_cast<std::size_t>(rank)];
    }
    // What all members bring to it, rank by rank.
    const Offer* const* offers(uint32_t number) const noexcept {
      return offers_ + static_cast<std::size_t>(number % kPlaces) * members_;
    }

   private:
    friend class Places;
    std::atomic<Chunk*> next_{nullptr};  // the chunk of the numbers that follow; of those at rest, any
    uint32_t first_ = 0;                 // its numbers: from here on
    std::size_t members_ = 0;
    Place* places_ = nullptr;  // these, and what follows, in the chunk's own memory
    Brought* brought_ = nullptr;
    const Offer** offers_ = nullptr;
  };

  // Throws std::bad_alloc.
  Places(Memory& memory, AsyncMemory& bound, Channel& owner, int members);
  ~Places();
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // What one collective counts, all members' sides and handles together.
  static constexpr std::size_t bytes_of_one(int members) noexcept {
    return sizeof(Place) +
           static_cast<std::size_t>(members) * (sizeof(Brought) + sizeof(Offer*) + kHandleBytes);
  }

  // With nobody inside: nothing is under way, and `latest`, a multiple of kPlaces, counts as complete. The
  // chunk where members go on.
  Chunk* begin_afresh(uint32_t latest) noexcept;
  // With nobody inside: ends the chunks that are at rest.
  void let_go_of_spares() noexcept;

  // The chunk behind `last`. NULL: there is no room before *out_oldest, a work of this member, is over.
  // Throws std::bad_alloc.
  Chunk* after(Chunk& last, int rank, Work** out_oldest);
  // The first work of a member that is not complete, below a number to which it has not come; NULL: none.
  Work* oldest(int rank, uint32_t below) noexcept;

  AsyncMemory& bound() const noexcept { return bound_; }

 private:
  static constexpr uint32_t kLeastChunks = 2;  // of every group, whatever the bound

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
  std::mutex mutex_;  // the list's ends, and the chunks at rest
  Chunk* front_ = nullptr;
  Chunk* resting_ = nullptr;
  uint32_t chunks_ = 0;
};

}  // namespace dist
