// SPDX-License-Identifier: Apache-2.0
// The two halves of a call link, independent of the link itself. CallSender cuts messages into frames and
// sends those of different messages in turn, so that a large message does not delay small ones. CallReceiver
// reassembles messages within limits. The owner holds a lock during every call to either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/net/calls.hpp"
#include "core/net/grpc/frame.hpp"

namespace dist::grpc_link {

class CallSender {
 public:
  // Adds a message that begins with the frame `first`, whose `bytes` is the size of the message; further
  // frames have the kind `rest`. `parts` may be NULL if there are none. Throws std::bad_alloc.
  void add(const Frame& first, FrameKind rest, Ref<CallParts> parts);
  // Drops a message, or the part of it that has not been sent. Returns false if all of it has been sent.
  bool drop(uint64_t id) noexcept;
  // Whether no part of the message has been sent.
  bool waits(uint64_t id) const noexcept;
  // Writes the next chunk of the message whose turn it is. Returns false if there is none.
  bool put_chunk(FrameSink& sink) noexcept;
  // The link has been replaced: drops the messages that were partly sent.
  void begin_anew() noexcept;
  void clear() noexcept;

 private:
  struct Sending {
    Frame first;
    FrameKind rest;
    Ref<CallParts> parts;
    bool begun = false;
    uint64_t sent = 0;
    std::size_t part = 0;  // the current part
    std::size_t at = 0;    // and the position in it
  };
  using Place = std::list<Sending>::iterator;
  void end(Place place) noexcept;

  std::list<Sending> turns_;
  std::unordered_map<uint64_t, Place> by_id_;
  std::vector<std::byte> gathered_;  // a copy of a chunk that spans several parts
};

class CallReceiver final : public FrameTaker {
 public:
  enum class What {
    kWhole,     // a message is complete
    kRefused,   // it exceeds a limit and is discarded
    kTakenBack  // the client no longer waits for this call
  };
  struct Event {
    What what;
    uint64_t id;
    uint64_t word;  // of the message's first frame: a timeout or a status
    Ref<CallMessage> message;
  };

  // `serves`: requests arrive; otherwise responses arrive. `pool` supplies memory for large messages and must
  // outlive the receiver. It may be NULL.
  CallReceiver(Memory& memory, bool serves, const CallLimits& limits, MessagePool* pool = nullptr) noexcept
      : memory_(memory), serves_(serves), limits_(limits), pool_(pool) {}

  const char* begin(const Frame& frame, std::byte** to) noexcept override;
  void finish(const Frame& frame) noexcept override;
  // The events since the last call, in order.
  std::vector<Event> take_events() noexcept { return std::move(events_); }

  // For responses: expect() adds a call whose response is awaited, and forget() removes it. expect() throws
  // std::bad_alloc.
  void expect(uint64_t id) { expected_.insert(id); }
  void forget(uint64_t id) noexcept;
  // Call this when the recipient of a complete message has destroyed it.
  void let_go(std::size_t bytes) noexcept { held_ -= bytes; }
  // The link has been replaced.
  void begin_anew() noexcept;

 private:
  struct Coming {
    Ref<CallMessage> message;  // NULL: the data are discarded
    uint64_t bytes = 0;
    uint64_t came = 0;
    uint64_t word = 0;
  };
  const char* begin_message(const Frame& frame) noexcept;
  const char* begin_data(const Frame& frame, std::byte** to) noexcept;
  void whole(uint64_t id) noexcept;

  Memory& memory_;
  const bool serves_;
  const CallLimits limits_;
  MessagePool* const pool_;
  std::unordered_map<uint64_t, Coming> coming_;
  std::unordered_set<uint64_t> expected_;
  std::vector<Event> events_;
  uint64_t last_id_ = 0;
  std::size_t held_ = 0;
};

}  // namespace dist::grpc_link
