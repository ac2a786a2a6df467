// SPDX-License-Identifier: Apache-2.0
// Inbox: the receiving half of a link, as a state machine that is independent of the link. It keeps messages
// that arrived before their receive, offers, and receives that wait. The owner holds a lock around every
// call.
//
// Invariant: the memory that a peer can make the inbox keep is bounded by the credit and by kMostOffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/memory.hpp"
#include "core/net/grpc/frame.hpp"
#include "core/net/grpc/piece.hpp"
#include "core/net/transport.hpp"

namespace dist::grpc_link {

class Inbox final : public FrameTaker {
 public:
  static constexpr std::size_t kMostOffers = std::size_t{1} << 20;

  // `whole`: larger messages that are sent ahead arrive in pieces, and the owner's lock is released in
  // between. `apart`: data may bypass frames.
  Inbox(Memory& memory, FrameSink& sink, std::size_t credit, std::size_t whole = SIZE_MAX,
        bool apart = false) noexcept
      : memory_(memory), sink_(sink), credit_(credit), whole_(whole), may_come_apart_(apart) {}
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // These return true if a transfer has ended, so that its owner must be notified. `transfer` has begun.
  // `gone`: nothing more will arrive, so only messages that are already here can be received.
  bool receive(Transfer& transfer, bool gone) noexcept;
  bool cancel(Transfer& transfer) noexcept;
  void forget(uint32_t generation, uint32_t run) noexcept;
  // Ends all receives that wait for the sender. Keeps messages that were sent ahead.
  bool end_all(Transfer::End end) noexcept;
  // This worker leaves, so nothing is received any more. Frames that the sender sends before it learns this
  // are discarded.
  void close() noexcept;

  // Frames from the sender.
  const char* begin(const Frame& frame, std::byte** to) noexcept override;
  void finish(const Frame& frame) noexcept override;
  bool take_ended() noexcept;
  // A piece begins to arrive. Returns what begin() returns.
  const char* begin_apart(const Piece& piece) noexcept;
  // The destination of its next bytes, as with Outbox::apart(). Both are empty if no piece is arriving.
  struct Coming {
    std::span<std::byte> data;
    std::span<std::byte> end;
  };
  Coming apart() noexcept;
  // The caller has stored this many of the bytes. Returns what begin() returns.
  const char* apart_came(std::size_t bytes) noexcept;
  // The sender's last frame has arrived.
  bool bye() const noexcept { return bye_; }

 private:
  enum class State : uint8_t {
    kComing,  // its data are arriving
    kHere,    // sent ahead, complete
    kOffered,
    kGranted,  // to `receive`
    kRevoked   // its remaining data are discarded
  };
  // A message that has no receive yet, or one that arrives in chunks. Its data follow the object in memory.
  struct Entry {
    State state = State::kComing;
    uint64_t id = 0;
    MessageKey key;
    std::size_t bytes = 0;
    std::size_t room = 0;  // for data
    std::size_t moved = 0;
    Transfer* receive = nullptr;
    Entry* next = nullptr;  // list by key: kHere and kOffered
    Entry** before = nullptr;
    Entry* next_by_id = nullptr;  // list by id: all except messages sent ahead
    Entry** before_by_id = nullptr;
    std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  };
  struct Bucket {
    Transfer* receives = nullptr;
    Entry* entries = nullptr;
  };
  static constexpr std::size_t kBuckets = 256;
  static std::size_t bucket_of(const MessageKey& key) noexcept { return key.hash() % kBuckets; }
  void drop_all() noexcept;
  bool forgotten(const MessageKey& key) const noexcept { return key.before(first_generation_, first_run_); }

  Entry* make(const MessageKey& key, std::size_t bytes, std::size_t room) noexcept;
  void link_by_key(Entry& entry) noexcept;
  void link_by_id(Entry& entry) noexcept;
  void unlink_by_key(Entry& entry) noexcept;
  void remove(Entry* entry) noexcept;
  Entry* find(uint64_t id) const noexcept;
  Transfer* take_receive(const MessageKey& key) noexcept;
  void wait(Transfer& transfer) noexcept;
  void end(Transfer& transfer, Transfer::End end) noexcept;
  void give_back(std::size_t bytes) noexcept;
  void tell_credit(bool at_once) noexcept;
  bool grant(Entry& entry, Transfer& transfer) noexcept;
  // `key` is NULL if no receive will ask for the message.
  const char* begin_ahead(const MessageKey* key, const Frame& frame, std::byte** to) noexcept;
  const char* begin_offered_ahead(const Frame& frame, std::byte** to) noexcept;
  const char* begin_offer(const Frame& frame) noexcept;
  const char* begin_chunk(const Frame& frame, std::byte** to) noexcept;
  const char* check_part(uint64_t id, uint64_t offset, uint64_t bytes, std::size_t most) const noexcept;
  void finish_ahead() noexcept;
  void finish_chunk(const Frame& frame) noexcept;
  void moved(Entry& entry, std::size_t bytes) noexcept;
  void finish_drop(uint64_t id) noexcept;

  Memory& memory_;
  FrameSink& sink_;
  const std::size_t credit_;
  const std::size_t whole_;
  const bool may_come_apart_;
  // Bytes that were sent ahead and whose credit has not been returned; `owed_` of them have been consumed.
  std::size_t used_ = 0;
  std::size_t owed_ = 0;
  std::size_t entries_ = 0;  // entries with a key that a receive may ask for
  std::size_t offers_ = 0;   // entries with an id
  std::size_t offered_ = 0;  // entries in state kOffered, whose sender may wait for credit
  uint64_t last_id_ = 0;
  uint32_t first_generation_ = 0;
  uint32_t first_run_ = 0;
  Bucket buckets_[kBuckets];
  Entry* by_id_[kBuckets] = {};
  // The message sent ahead whose data are arriving. They go to the memory of a receive or of an entry, or are
  // discarded.
  Transfer* into_ = nullptr;
  Entry* coming_ = nullptr;
  std::size_t coming_bytes_ = 0;
  // The piece that is arriving, and how many of its bytes are missing, including the final one.
  Piece piece_;
  std::size_t piece_left_ = 0;
  std::byte piece_end_{};
  std::byte nowhere_[4096];
  bool ended_ = false;
  bool bye_ = false;
  bool closed_ = false;
};

}  // namespace dist::grpc_link
