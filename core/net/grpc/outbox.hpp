// SPDX-License-Identifier: Apache-2.0
// Outbox: the sending half of a link, as a state machine that is independent of the link. It tracks which
// messages are sent ahead, which are offered, and which offers have been granted. The owner holds a lock
// around every call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/net/grpc/frame.hpp"
#include "core/net/grpc/piece.hpp"
#include "core/net/transport.hpp"

namespace dist::grpc_link {

class Outbox final : public FrameTaker {
 public:
  // Limit for messages that are offered or granted at a time. Exceeding it is a bug.
  static constexpr std::size_t kMostOffers = std::size_t{1} << 20;

  // `chunk`: the maximum size of a chunk of a granted message. Messages of `least_apart` bytes or more are
  // sent in pieces instead.
  Outbox(FrameSink& sink, std::size_t credit, std::size_t chunk = kChunkBytes,
         std::size_t least_apart = SIZE_MAX) noexcept
      : sink_(sink), credit_(credit), chunk_(chunk), least_apart_(least_apart) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // These return true if a transfer has ended, so that its owner must be notified. `transfer` has begun.
  bool send(Transfer& transfer) noexcept;
  bool cancel(Transfer& transfer) noexcept;
  bool end_all(Transfer::End end) noexcept;

  // Frames from the receiver.
  const char* begin(const Frame& frame, std::byte** to) noexcept override;
  void finish(const Frame& frame) noexcept override;
  // Whether any transfer has ended since the last call.
  bool take_ended() noexcept;

  // Writes the next chunk of a granted message, copying it. Returns false if no message is granted or the
  // next one is sent in pieces.
  bool put_chunk() noexcept;
  bool has_chunks() const noexcept { return lists_[kGranted].first != nullptr; }

  // If the next granted message is sent in pieces and no piece is in flight, returns its next piece. The
  // message's transfer ends when all pieces have been sent.
  bool next_apart(Piece* piece) noexcept;
  // The bytes of the piece in flight that must be sent next: data and, when these are complete, the final
  // byte, which tells whether the message is still being sent. If it is not, other bytes take the place of
  // the data. Both are empty if no piece is in flight.
  struct Going {
    std::span<const std::byte> data;
    std::span<const std::byte> end;
  };
  Going apart() noexcept;
  // The caller has sent this many of the bytes.
  void apart_gone(std::size_t bytes) noexcept;
  // Whether the receiver has confirmed that everything sent has arrived (kByeTaken).
  bool bye_taken() const noexcept { return bye_taken_; }
  bool peer_leaves() const noexcept { return peer_leaves_; }
  // Whether everything that was sent ahead has been consumed.
  bool owes_nothing() const noexcept { return used_ == 0; }

 private:
  static constexpr std::size_t kBuckets = 256;
  bool go_ahead(std::size_t bytes) noexcept;
  void offer(Transfer& transfer) noexcept;
  void promote() noexcept;
  void link(Transfer& transfer, int list) noexcept;
  void take_out(Transfer& transfer) noexcept;
  Transfer* find(uint64_t id) const noexcept;
  // The next granted transfer that is sent in pieces (`apart`) or in chunks; NULL if there is none.
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
  // Every transfer is in the list with the number in its `owner`, in order of arrival.
  enum : int { kOffered, kTooLarge, kGranted, kGoing, kLists };  // kGoing: all data handed out
  struct List {
    Transfer* first = nullptr;
    Transfer** end = &first;
  };
  List lists_[kLists];
  Transfer* by_id_[kBuckets] = {};
  struct UnderWay {
    Piece piece;
    std::size_t gone = 0;
    bool whole = true;  // the message was still being sent so far
  };
  std::optional<UnderWay> piece_;
  bool ended_ = false;
  bool bye_taken_ = false;
  bool peer_leaves_ = false;
};

}  // namespace dist::grpc_link
