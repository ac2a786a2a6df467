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
#include "core/engine/transport.hpp"

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

// Data that one chunk has at most, and what one write carries at most beside a large message that goes ahead.
inline constexpr std::size_t kChunkBytes = std::size_t{512} << 10;
inline constexpr std::size_t kReasonTextBytes = 200;
inline constexpr std::size_t kIdentityBytes = 16;
// Of one message: what its size may be. Larger ones are no mistake of a peer's that memory must be found for.
inline constexpr uint64_t kMostMessageBytes = uint64_t{1} << 48;

struct Frame {
  static constexpr std::size_t kBytes = 56;

  FrameKind kind = FrameKind::kNone;
  uint64_t id = 0;
  MessageKey key{};
  uint64_t bytes = 0;
  uint64_t offset = 0;

  // How many bytes of data come behind the header.
  uint64_t data_bytes() const noexcept;
  void write(std::byte* to) const noexcept;
  // False: no frame. Fields that a kind does not have must be 0.
  bool read(const std::byte* from) noexcept;
};

const char* name_of(FrameKind kind) noexcept;

// Where the frames go that a half of a link has to say. What it is given is copied.
class FrameSink {
 public:
  virtual void put(const Frame& frame, const std::byte* data = nullptr) noexcept = 0;
  // The data may be sent from where they lie, which is so until `holder` is let go.
  virtual void put_held(const Frame& frame, const std::byte* data, Counted& holder) noexcept {
    static_cast<void>(holder);
    put(frame, data);
  }

 protected:
  ~FrameSink() = default;
};

// Who reads them. begin() says where the frame's data go, in `to` (NULL: nowhere), or why the peer breaks the protocol
// (NULL: it does not); finish() is called when all of them are there. Never begin() without finish(), but where the link is
// over.
class FrameTaker {
 public:
  virtual const char* begin(const Frame& frame, std::byte** to) noexcept = 0;
  virtual void finish(const Frame& frame) noexcept = 0;

 protected:
  ~FrameTaker() = default;
};

// Puts frames together out of pieces, which may be cut anywhere.
class FrameReader {
 public:
  // Frames that lie in one message of the link's end with it. The answer: as FrameTaker::begin()'s.
  const char* feed(const std::byte* data, std::size_t bytes, FrameTaker& taker) noexcept;
  bool between_frames() const noexcept { return header_bytes_ == 0; }
  // Inside a message that goes ahead, and has more than `whole` bytes.
  bool inside_ahead(std::size_t whole) const noexcept {
    return left_ != 0 && frame_.bytes > whole &&
           (frame_.kind == FrameKind::kMessage || frame_.kind == FrameKind::kAhead);
  }
  // The rest of the frame goes nowhere.
  void let_data_go() noexcept { to_ = nullptr; }

 private:
  std::byte header_[Frame::kBytes];
  std::size_t header_bytes_ = 0;
  Frame frame_;
  std::byte* to_ = nullptr;
  uint64_t left_ = 0;
};

}  // namespace dist::grpc_link
