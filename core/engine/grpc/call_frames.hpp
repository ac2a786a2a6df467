// SPDX-License-Identifier: Apache-2.0
// The two halves of a call link, independent of the link itself. CallSender cuts messages into frames and
// takes turns, so that a large message does not delay small ones. CallReceiver reassembles messages within
// limits. The owner holds a lock around every call of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/engine/calls.hpp"
#include "core/engine/grpc/frame.hpp"

namespace dist::grpc_link {

class CallSender {
 public:
  // A message that begins with `first`, whose `bytes` are the message's; `parts` may be NULL where there are none. The frames
  // behind it are of `rest`. Throws std::bad_alloc.
  void add(const Frame& first, FrameKind rest, Ref<CallParts> parts);
  // It is not sent, or not to its end. False: it has gone.
  bool drop(uint64_t id) noexcept;
  // Whether nothing of it has gone.
  bool waits(uint64_t id) const noexcept;
  // The next piece of the message whose turn it is. False: there is none.
  bool put_chunk(FrameSink& sink) noexcept;
  // The link is another one: what has begun to go is dropped.
  void begin_anew() noexcept;
  void clear() noexcept;

 private:
  struct Sending {
    Frame first;
    FrameKind rest;
    Ref<CallParts> parts;
    bool begun = false;
    uint64_t sent = 0;
    std::size_t part = 0;  // where it stands: in this one,
    std::size_t at = 0;    // so far
  };
  using Place = std::list<Sending>::iterator;
  void end(Place place) noexcept;

  std::list<Sending> turns_;
  std::unordered_map<uint64_t, Place> by_id_;
  std::vector<std::byte> gathered_;  // a chunk that lies in several parts
};

class CallReceiver final : public FrameTaker {
 public:
  enum class What {
    kWhole,     // a message is there
    kRefused,   // it is beyond a limit, and goes nowhere
    kTakenBack  // the client does not wait for this call any more
  };
  struct Event {
    What what;
    uint64_t id;
    uint64_t word;  // of the first frame: a time-out, or a status
    Ref<CallMessage> message;
  };

  // `serves`: requests come, else answers.
  // `pool`, which outlives it, is for the memory of large ones; NULL: none.
  CallReceiver(Memory& memory, bool serves, const CallLimits& limits, MessagePool* pool = nullptr) noexcept
      : memory_(memory), serves_(serves), limits_(limits), pool_(pool) {}

  const char* begin(const Frame& frame, std::byte** to) noexcept override;
  void finish(const Frame& frame) noexcept override;
  // What has happened since this was asked for last, in order.
  std::vector<Event> take_events() noexcept { return std::move(events_); }

  // Of answers: one that is waited for, and one that is not any more. Throws std::bad_alloc.
  void expect(uint64_t id) { expected_.insert(id); }
  void forget(uint64_t id) noexcept;
  // Of a whole message: nobody has it any more.
  void let_go(std::size_t bytes) noexcept { held_ -= bytes; }
  // The link is another one.
  void begin_anew() noexcept;

 private:
  struct Coming {
    Ref<CallMessage> message;  // NULL: it goes nowhere
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
