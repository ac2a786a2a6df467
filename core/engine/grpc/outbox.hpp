// SPDX-License-Identifier: Apache-2.0
// Outbox: the sending half of a link as a state machine that knows no link. It tracks which messages are sent
// ahead, which are offered, and which offers have been granted. The owner holds a lock around every call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/engine/grpc/frame.hpp"
#include "core/engine/grpc/piece.hpp"
#include "core/engine/transport.hpp"

namespace dist::grpc_link {

class Outbox final : public FrameTaker {
 public:
  // Those that are offered or granted at a time: more is a mistake of somebody's.
  static constexpr std::size_t kMostOffers = std::size_t{1} << 20;

  // `chunk`: what a piece of a granted message has at most, but for messages of `least_apart` bytes and more.
  Outbox(FrameSink& sink, std::size_t credit, std::size_t chunk = kChunkBytes,
         std::size_t least_apart = SIZE_MAX) noexcept
      : sink_(sink), credit_(credit), chunk_(chunk), least_apart_(least_apart) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Each says whether a transfer is over by it, so that its owner must be told. `transfer` has begun.
  bool send(Transfer& transfer) noexcept;
  bool cancel(Transfer& transfer) noexcept;
  bool end_all(Transfer::End end) noexcept;

  // Frames of the receiver's.
  const char* begin(const Frame& frame, std::byte** to) noexcept override;
  void finish(const Frame& frame) noexcept override;
  // Whether any transfer is over since this was asked for last.
  bool take_ended() noexcept;

  // The next piece of what has been granted, copied; false: there is none, or it goes apart.
  bool put_chunk() noexcept;
  bool has_chunks() const noexcept { return lists_[kGranted].first != nullptr; }

  // The next piece of what has been granted, if it goes apart and there is room for it among those under way; false: else. Its
  // message is over when all pieces have gone.
  bool next_apart(Piece* piece) noexcept;
  // Of the pieces, in the order in which they were given out, what goes next: data, and, where all of those are in it, the byte
  // behind them that says whether the message has been sent to the end. Where it has not, something goes in its place. Both
  // are empty: nothing is under way.
  struct Going {
    std::span<const std::byte> data;
    std::span<const std::byte> end;
  };
  Going apart() noexcept;
  // As many of those bytes have gone.
  void apart_gone(std::size_t bytes) noexcept;
  // Whether all that has been sent is with the receiver, by what it has said (kByeTaken).
  bool bye_taken() const noexcept { return bye_taken_; }
  bool peer_leaves() const noexcept { return peer_leaves_; }
  // Whether all that went ahead has been taken.
  bool owes_nothing() const noexcept { return used_ == 0; }

 private:
  static constexpr std::size_t kBuckets = 256;
  static std::size_t counted(std::size_t bytes) noexcept {
    return bytes > Transport::kLeastCounted ? bytes : Transport::kLeastCounted;
  }
  bool go_ahead(std::size_t bytes) noexcept;
  void offer(Transfer& transfer) noexcept;
  void promote() noexcept;
  void link(Transfer& transfer, int list) noexcept;
  void take_out(Transfer& transfer) noexcept;
  Transfer* find(uint64_t id) const noexcept;
  // The next one that has been granted; NULL: none of this kind.
  Transfer* granted(bool apart) const noexcept;
  void unlink(Transfer& transfer) noexcept;
  void end(Transfer& transfer, Transfer::End end) noexcept;

  FrameSink& sink_;
  const std::size_t credit_;
  const std::size_t chunk_;
  const std::size_t least_apart_;
  std::size_t used_ = 0;
  uint64_t last_id_ = 0;
  std::size_t offers_ = 0;
  // Each transfer is in one of them, which its `owner` says, in the order of coming.
  enum : int { kOffered, kTooLarge, kGranted, kGoing, kLists };  // kGoing: all of it is given out
  struct List {
    Transfer* first = nullptr;
    Transfer** end = &first;
  };
  List lists_[kLists];
  Transfer* by_id_[kBuckets] = {};
  struct UnderWay {
    Piece piece;
    std::size_t gone = 0;
    bool whole = true;  // so far
  };
  // One is being written while another one waits.
  static constexpr std::size_t kMostPieces = 2;
  UnderWay pieces_[kMostPieces];
  std::size_t first_piece_ = 0;
  std::size_t num_pieces_ = 0;
  bool ended_ = false;
  bool bye_taken_ = false;
  bool peer_leaves_ = false;
};

}  // namespace dist::grpc_link
