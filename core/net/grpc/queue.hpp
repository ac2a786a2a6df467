// SPDX-License-Identifier: Apache-2.0
// FrameQueue: the frames that wait for a link, in gRPC slices that contain whole frames. It outlives links,
// so frames that are queued before there is a link are sent on the first one. A carrier takes bytes instead
// of slices; a queue serves either a stream or a carrier.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <mutex>
#include <vector>

#include "core/net/grpc/frame.hpp"

namespace dist::grpc_link {

class FrameQueue final : public FrameSink {
 public:
  // The maximum size of one message of the link. A larger slice is sent as a message of its own.
  static constexpr std::size_t kWriteBytes = std::size_t{1} << 20;

  void put(const Frame& frame, const std::byte* data = nullptr) noexcept override;
  void put_held(const Frame& frame, const std::byte* data, Counted& holder) noexcept override;
  // Moves the first frames into one message. Returns false if the queue is empty.
  bool take(grpc::ByteBuffer* message) noexcept;
  // Copies the next frames into at most `room` bytes and returns their size. Only a frame larger than `room`
  // is split.
  std::size_t drain(std::byte* to, std::size_t room) noexcept;
  // From here on, put() writes frames to `to` as long as they are consecutive and fit. end_direct() returns
  // their size.
  void begin_direct(std::byte* to, std::size_t room) noexcept;
  std::size_t end_direct() noexcept;
  bool empty() const noexcept;
  void clear() noexcept;

 private:
  // Smaller frames share a slice.
  static constexpr std::size_t kSharedBytes = 4096;
  static constexpr std::size_t kTailBytes = 16384;
  void seal() noexcept;
  void push(grpc::Slice slice, bool goes_on = false) noexcept;
  void put_small(const Frame& frame, const std::byte* data, std::size_t bytes) noexcept;
  void drop_taken() noexcept;

  mutable std::mutex mutex_;
  std::vector<grpc::Slice> slices_;
  std::vector<uint8_t> goes_on_;  // per slice; 1: its last frame continues in the next one
  std::size_t first_ = 0;         // index of the first slice that has not been taken
  std::vector<std::byte> tail_;
  std::size_t drained_ = 0;  // number of bytes taken from the first slice
  std::byte* direct_ = nullptr;
  std::size_t direct_room_ = 0;
  std::size_t direct_bytes_ = 0;
};

}  // namespace dist::grpc_link
