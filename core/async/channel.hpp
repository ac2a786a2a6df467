// SPDX-License-Identifier: Apache-2.0
// Channel: the asynchronous collectives of a group. The k-th collective that a member issues meets the k-th
// one of each peer in a place (places.hpp). The last member to arrive there compares the signatures, opens
// the place's pack (pack.hpp), and submits it to oneTBB. Any number of collectives can be under way.
//
// Invariant: the queued collectives of a strategy use no more memory than its limit. A member that would
// exceed the limit waits for its oldest collective. Meanwhile it processes blocks of that collective, as in
// any wait.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "core/async/async_memory.hpp"
#include "core/async/crossing_line.hpp"
#include "core/async/places.hpp"
#include "core/async/work.hpp"
#include "core/base/arena.hpp"
#include "core/collective/collectives.hpp"

namespace dist {

// State that all channels of a strategy share.
struct ChannelHome {
  // Processes blocks in parallel to the members; NULL: only members do, when they wait or test.
  Arena* helpers;
  AsyncMemory* memory;
  std::size_t cache_bytes;  // size of the last-level cache
  Crossings* crossings;     // NULL: there are no other workers
};

class ChannelWork;

class Channel final : CrossingLine::Landing {
 public:
  // `communicator` connects the workers of the group; NULL: all members are in this process. Throws
  // std::bad_alloc.
  Channel(Memory& memory, Group& group, const ChannelHome& home, WorkerCommunicator* communicator);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Call this before a run and before the group's begin_run(), with no member inside.
  void begin_run() noexcept;

  // Validates a call and issues it. `cancel` may be NULL. Throws std::bad_alloc.
  Status issue(const Member& member, Call& call, WorkList& list, Cancel* cancel, Ref<Work>* out);

 private:
  friend class ChannelWork;
  using Chunk = Places::Chunk;
  using Place = Places::Place;
  class Counted;
  class Patience;

  struct alignas(kApart) MemberState {
    Chunk* chunk = nullptr;  // the chunk of its latest collective
    uint32_t issued = 0;     // the number of its latest collective
  };

  uint32_t sequence(uint32_t number) const noexcept { return number - first_; }
  Status find_place(const Member& member, uint32_t number, Patience& patience, Chunk** out);
  Status count_copies(const Member& member, uint32_t number, Patience& patience, Counted& copies);
  bool disagree(Chunk& chunk, int rank, uint32_t number, bool* out_decidable) const noexcept;
  ErrorRecord report(Chunk& chunk, uint32_t number, Trouble trouble, int64_t waited_ns) const noexcept;
  void open(Chunk& chunk, int rank, uint32_t number) noexcept;
  void open(Place& place, int rank, uint32_t number, const Exchange& exchange) noexcept;
  // If the pack of the place is open, processes some of its blocks, beginning with stripe `first`.
  void help(Place& place, uint32_t first) noexcept;
  void launch(Place& place, uint32_t number) noexcept;
  void here(Place& place, uint32_t number, const Exchange& exchange) noexcept override;
  void done(Place& place, uint32_t number) noexcept override;
  void stopped(Place& place, uint32_t number) noexcept override;
  static void run_task(void* place, uint32_t number) noexcept;

  Memory& memory_;
  Group& group_;
  const ChannelHome home_;
  const int size_;
  const int all_;  // number of members of all workers
  Places places_;
  MemberState* members_ = nullptr;  // by rank; only the member itself uses its entry
  uint32_t first_ = 0;              // collectives issued before this run
  uint32_t refusals_ = 0;           // AsyncMemory::refusals() when this run began
  std::optional<CrossingLine> line_;
};

// A group's channel, created by the first asynchronous collective.
class LazyChannel {
 public:
  LazyChannel(Memory& memory, Group& group, const ChannelHome& home,
              WorkerCommunicator* communicator) noexcept
      : memory_(memory), group_(group), home_(home), communicator_(communicator) {}
  ~LazyChannel();
  LazyChannel(const LazyChannel&) = delete;
  LazyChannel& operator=(const LazyChannel&) = delete;

  // Throws std::bad_alloc.
  Channel& get();
  // NULL if it has not been created.
  Channel* made() const noexcept { return made_.load(std::memory_order_acquire); }
  void begin_run() noexcept {
    if (Channel* channel = made()) channel->begin_run();
  }
  const ChannelHome& home() const noexcept { return home_; }

 private:
  Memory& memory_;
  Group& group_;
  const ChannelHome home_;
  WorkerCommunicator* const communicator_;
  std::mutex mutex_;
  std::atomic<Channel*> made_{nullptr};
};

// One member's asynchronous collective. Its copies of tensor descriptors follow the object in memory.
class ChannelWork final : public Work {
 public:
  ChannelWork(Memory& memory, Channel& channel, WorkList& list, const Member& member, const Call& call,
              Places::Chunk& chunk, uint32_t number) noexcept;
  const Call& call() const noexcept { return call_; }
  void begin(Recorder* recorder) noexcept;

  Status start() override;
  Status ready(std::size_t tensor) override;
  bool has_come(int rank) const noexcept override;
  bool crosses() const noexcept override;
  bool calls_host() const noexcept override { return call_.group != nullptr; }
  void end_late(Trouble trouble, int64_t waited_ns) noexcept override;
  void check(int64_t waited_ns) noexcept override;
  ErrorRecord report(Trouble trouble, int64_t waited_ns) const noexcept override {
    return channel_.report(chunk_, number_, trouble, waited_ns);
  }
  const Signature& signature(int64_t* out_sequence) const noexcept override {
    *out_sequence = channel_.sequence(number_);
    return chunk_.brought(rank(), number_).signature;
  }

 private:
  Places::Place& place() const noexcept { return chunk_.place(number_); }
  bool advance() noexcept override;
  void give_up() noexcept override;
  bool complete() const noexcept override { return place().pack.complete(number_); }

  Channel& channel_;
  Places::Chunk& chunk_;
  const uint32_t number_;
  const Call call_;
};

}  // namespace dist
