// SPDX-License-Identifier: Apache-2.0
// Channel: a group's asynchronous collectives. The k-th that a member issues meets the k-th of each peer in a
// slot; the last to come compares their statements, opens the slot's pack (pack.hpp), and hands it to oneTBB.
// A slot serves again kSlots collectives later: that many can be under way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "core/cross_device/arena.hpp"
#include "core/cross_device/collectives.hpp"
#include "core/cross_device/exchange.hpp"
#include "core/cross_device/kept_call.hpp"
#include "core/cross_device/pack.hpp"
#include "core/cross_device/work.hpp"

namespace dist {

class Channel {
 public:
  static constexpr uint32_t kSlots = 16;

  // `helpers`: where blocks are done beside the members; NULL: members alone do them, in their waits and
  // questions. Throws std::bad_alloc.
  Channel(Memory& memory, Group& group, Arena* helpers, std::size_t cache_bytes);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Before a run, with nobody inside, and before the group begins it.
  void begin_run() noexcept;

  // Checks a call and issues it; its number among this member's. RESOURCE_EXHAUSTED where kSlots are under
  // way.
  Status issue(const Caller& caller, Call& call, uint32_t* out_number);

  bool complete(uint32_t number) const noexcept { return slot(number).pack.complete(number); }
  bool has_come(int rank, uint32_t number) const noexcept;
  // Does blocks of it, if it is open, those of lane `first` before the others'.
  void help(uint32_t number, int first) noexcept;
  // Nobody touches the members' tensors of that number any more.
  void close(uint32_t number) noexcept { slot(number).pack.close(number, static_cast<uint32_t>(size_)); }
  // Whether those who have come to it came for different things.
  bool disagree(int rank, uint32_t number, bool* out_decidable) const noexcept;
  ErrorRecord report(uint32_t number, Trouble trouble, int64_t waited_ns) const noexcept;
  uint32_t sequence(uint32_t number) const noexcept { return number - first_; }
  const Statement& statement(int rank, uint32_t number) const noexcept {
    return entry(rank, number).statement;
  }

  Group& group() noexcept { return group_; }

 private:
  struct Entry {
    explicit Entry(Memory& memory) noexcept : kept(memory) {}
    std::atomic<uint32_t> number{0};  // which collective it is about; published last
    std::atomic<uint64_t> signature{
        0};  // the statement's, for peers that do not know which number it has now
    Statement statement;
    KeptCall kept;
    Offer offer;
  };
  struct Slot {
    Pack pack;
    std::optional<Exchange> exchange;
  };

  Slot& slot(uint32_t number) const noexcept { return slots_[number % kSlots]; }
  std::size_t place(int rank, uint32_t number) const noexcept {
    return (number % kSlots) * static_cast<std::size_t>(size_) + static_cast<std::size_t>(rank);
  }
  Entry& entry(int rank, uint32_t number) const noexcept { return entries_[place(rank, number)]; }
  void open(int rank, uint32_t number) noexcept;
  void launch(uint32_t number) noexcept;
  static void run_task(void* channel, uint32_t number) noexcept;

  Memory& memory_;
  Group& group_;
  Arena* const helpers_;
  const std::size_t cache_bytes_;
  const int size_;
  Slot* slots_ = nullptr;
  Entry* entries_ = nullptr;
  const Offer** offers_ = nullptr;  // as the entries
  uint32_t* issued_ = nullptr;      // by rank; each one's own
  uint32_t first_ = 0;              // issued before this run
};

// A group's channel, made when the first collective wants it.
class LazyChannel {
 public:
  LazyChannel(Memory& memory, Group& group, Arena* helpers, std::size_t cache_bytes) noexcept
      : memory_(memory), group_(group), helpers_(helpers), cache_bytes_(cache_bytes) {}
  ~LazyChannel();
  LazyChannel(const LazyChannel&) = delete;
  LazyChannel& operator=(const LazyChannel&) = delete;

  // Throws std::bad_alloc.
  Channel& get();
  // NULL: nobody has wanted it.
  Channel* made() const noexcept { return made_.load(std::memory_order_acquire); }
  void begin_run() noexcept {
    if (Channel* channel = made()) channel->begin_run();
  }
  Arena* helpers() const noexcept { return helpers_; }

 private:
  Memory& memory_;
  Group& group_;
  Arena* const helpers_;
  const std::size_t cache_bytes_;
  std::mutex mutex_;
  std::atomic<Channel*> made_{nullptr};
};

// One asynchronous collective of one member.
class ChannelWork final : public Work {
 public:
  ChannelWork(Memory& memory, Channel& channel, WorkList& list, int rank, int64_t timeout_ns) noexcept
      : Work(memory, channel.group(), list, rank, timeout_ns), channel_(channel) {}
  Status issue(const Caller& caller, Call& call) {
    DIST_TRY(channel_.issue(caller, call, &number_));
    begin();
    record(caller.recorder, channel_.statement(rank(), number_), number_, channel_.sequence(number_),
           call.bytes);
    return kOk;
  }
  Status start() override;
  Status ready(std::size_t tensor) override;
  bool has_come(int rank) const noexcept override { return channel_.has_come(rank, number_); }
  void check(int64_t waited_ns) noexcept override;
  ErrorRecord report(Trouble trouble, int64_t waited_ns) const noexcept override {
    return channel_.report(number_, trouble, waited_ns);
  }
  const Statement& statement(int64_t* out_sequence) const noexcept override {
    *out_sequence = channel_.sequence(number_);
    return channel_.statement(rank(), number_);
  }

 private:
  bool advance() noexcept override;
  void give_up() noexcept override { channel_.close(number_); }
  bool complete() const noexcept override { return channel_.complete(number_); }

  Channel& channel_;
  uint32_t number_ = 0;
};

}  // namespace dist
