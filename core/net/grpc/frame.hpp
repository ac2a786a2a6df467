// SPDX-License-Identifier: Apache-2.0
// The frames on a link. A frame is a header of fixed size and, for some kinds, data. Fields are written one
// by one, so the encoding does not depend on the compiler. Nothing here depends on gRPC.
//
//     forwards, from the sender      kMessage   key, bytes, data      sent ahead of its receive, within the credit
//                                    kOffer     id, key, bytes        too large for the credit: waits for a grant
//                                    kAhead     id, bytes, data       an offered message that now fits the credit
//                                    kChunk     id, offset, bytes, data   part of a granted message, in order
//                                    kDrop      id                    the sender withdraws the message
//                                    kBye                             last frame: the worker leaves
//     backwards, from the receiver   kGrant     id                    a receive waits for it: send it
//                                    kRevoke    id                    the receive was cancelled: offer it again
//                                    kMisfit    id                    the receive has another size
//                                    kForgotten id                    no receive will ask for it
//                                    kCredit    bytes                 messages sent ahead have been consumed
//                                    kByeTaken                        everything before kBye has arrived
//                                    kLeaving                         the receiver leaves and accepts no more
//     both ways, on control links    kBeat      id, offset            heartbeat; the receiver echoes `id` as
//                                                                     `offset` (0: none)
//                                    kHere      id, data: Identity    worker `id` has joined, as this incarnation
//                                    kLost      id, offset, data      worker `id` is lost, and data is the reason;
//                                                                     offset 1: nothing more will come from it
//                                    kLeft      id, offset            worker `id` has left; offset 1: to form a
//                                                                     generation
//                                    kFormed    id, data: two sets    generation `id`: its workers, and which of
//                                                                     them were in the previous one
//
// Call links carry heartbeats and these frames:
//
//     from the client                kCall      id, bytes, offset     a request of this size; offset: timeout in ns
//                                    kCallData  id, offset, bytes, data   the next part of it
//                                    kTakeBack  id                    the client no longer waits for the response
//     from the server                kAnswer    id, bytes, offset     a response of this size; offset: its status
//                                    kAnswerData  id, offset, bytes, data   the next part of it
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/memory.hpp"
#include "core/net/transport.hpp"

namespace dist::grpc_link {

enum class FrameKind : uint8_t {
  kNone,
  kMessage,
  kOffer,
  kAhead,
  kChunk,
  kDrop,
  kBye,
  kGrant,
  kRevoke,
  kMisfit,
  kForgotten,
  kCredit,
  kByeTaken,
  kLeaving,
  kBeat,
  kHere,
  kLost,
  kLeft,
  kFormed,
  kCall,
  kCallData,
  kTakeBack,
  kAnswer,
  kAnswerData,
  kEnd
};

// The maximum data size of a chunk, and of a write besides a large message that is sent ahead.
inline constexpr std::size_t kChunkBytes = std::size_t{512} << 10;
inline constexpr std::size_t kReasonTextBytes = 640;
inline constexpr std::size_t kIdentityBytes = 16;
// Limit for the size of a message. A larger size violates the protocol, and no memory is allocated for it.
inline constexpr uint64_t kMostMessageBytes = uint64_t{1} << 48;

struct Frame {
  static constexpr std::size_t kBytes = 56;

  FrameKind kind = FrameKind::kNone;
  uint64_t id = 0;
  MessageKey key{};
  uint64_t bytes = 0;
  uint64_t offset = 0;

  // Number of data bytes after the header.
  uint64_t data_bytes() const noexcept;
  void write(std::byte* to) const noexcept;
  // Returns false if this is not a valid frame. Fields that a kind does not use must be 0.
  bool read(const std::byte* from) noexcept;
};

const char* name_of(FrameKind kind) noexcept;

// Receives the frames that one half of a link sends. put() copies the frame and its data.
class FrameSink {
 public:
  virtual void put(const Frame& frame, const std::byte* data = nullptr) noexcept = 0;
  // The same, but the sink may send the data in place. They are valid until `holder` is released.
  virtual void put_held(const Frame& frame, const std::byte* data, Counted& holder) noexcept {
    static_cast<void>(holder);
    put(frame, data);
  }

 protected:
  ~FrameSink() = default;
};

// Consumes frames. begin() sets `to` to the destination of the frame's data, or to NULL to discard them, and
// returns NULL. If the peer has violated the protocol, it returns a description instead. finish() is called
// when all data have arrived. Every begin() is followed by finish(), unless the link ends.
class FrameTaker {
 public:
  virtual const char* begin(const Frame& frame, std::byte** to) noexcept = 0;
  virtual void finish(const Frame& frame) noexcept = 0;

 protected:
  ~FrameTaker() = default;
};

// Assembles frames from input that may be cut at any byte.
class FrameReader {
 public:
  // A message of the link must end with the end of a frame. Returns what FrameTaker::begin() returns.
  const char* feed(const std::byte* data, std::size_t bytes, FrameTaker& taker) noexcept;
  bool between_frames() const noexcept { return header_bytes_ == 0; }
  // Whether the reader is inside a message that was sent ahead and has more than `whole` bytes.
  bool inside_ahead(std::size_t whole) const noexcept {
    return left_ != 0 && frame_.bytes > whole &&
           (frame_.kind == FrameKind::kMessage || frame_.kind == FrameKind::kAhead);
  }
  // Discards the remaining data of the current frame.
  void let_data_go() noexcept { to_ = nullptr; }

 private:
  std::byte header_[Frame::kBytes];
  std::size_t header_bytes_ = 0;
  Frame frame_;
  std::byte* to_ = nullptr;
  uint64_t left_ = 0;
};

}  // namespace dist::grpc_link
