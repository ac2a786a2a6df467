// SPDX-License-Identifier: Apache-2.0
// The two halves of a link without gRPC. A test decides when data moves between them.
#pragma once

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/net/grpc/frame.hpp"
#include "core/net/grpc/inbox.hpp"
#include "core/net/grpc/outbox.hpp"
#include "tests/unit/counting_memory.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist::grpc_link {

using End = Transfer::End;
constexpr std::size_t kCredit = 1024;

#define assert_end(transfer, wanted) \
  assert_int_equal(static_cast<int>((transfer).end()), static_cast<int>(End::wanted))

// Stores the frames in the form in which a link sends them.
struct Wire final : FrameSink {
  void put(const Frame& frame, const std::byte* data) noexcept override {
    const std::size_t at = bytes.size();
    const auto size = static_cast<std::size_t>(frame.data_bytes());
    bytes.resize(at + Frame::kBytes + size);
    frame.write(bytes.data() + at);
    if (size != 0) std::memcpy(bytes.data() + at + Frame::kBytes, data, size);
    ++frames;
    last = frame;
  }
  std::vector<std::byte> bytes;
  int frames = 0;
  Frame last;
};

// A sender, a receiver, and the frames in transit between them. The test decides when frames move.
struct Pair {
  explicit Pair(std::size_t credit = kCredit, std::size_t least_apart = SIZE_MAX)
      : out(forwards, credit, kChunkBytes, least_apart),
        in(*memory, backwards, credit, SIZE_MAX, least_apart != SIZE_MAX) {}
  void forward(std::size_t piece = 7) { feed(forwards, there, in, piece); }
  void backward(std::size_t piece = 7) { feed(backwards, back, out, piece); }
  void move() {
    while (!forwards.bytes.empty() || !backwards.bytes.empty() || out.has_chunks()) {
      while (out.put_chunk()) {
      }
      forward();
      backward();
    }
  }
  static void feed(Wire& wire, FrameReader& reader, FrameTaker& taker, std::size_t piece) {
    const std::vector<std::byte> bytes = std::move(wire.bytes);
    wire.bytes.clear();
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      const char* const why = reader.feed(bytes.data() + at, std::min(piece, bytes.size() - at), taker);
      if (why != nullptr) fail_msg("%s", why);
    }
    assert_true(reader.between_frames());
  }
  void send(const MessageKey& key, const std::vector<std::byte>& data, Transfer& transfer) {
    transfer.begin({1, key, const_cast<std::byte*>(data.data()), data.size()});
    transfer.sends = true;
    transfer.before = nullptr;
    out.send(transfer);
  }
  void receive(const MessageKey& key, std::vector<std::byte>& data, Transfer& transfer, bool gone = false) {
    transfer.begin({0, key, data.data(), data.size()});
    transfer.before = nullptr;
    in.receive(transfer, gone);
  }

  CountingMemory memory;
  Wire forwards;
  Wire backwards;
  FrameReader there;
  FrameReader back;
  Outbox out;
  Inbox in;
};

inline std::vector<std::byte> pattern(std::size_t bytes, int seed) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    made[i] = static_cast<std::byte>(seed * 31 + static_cast<int>(i * 7 + (i >> 9)));
  return made;
}

}  // namespace dist::grpc_link
