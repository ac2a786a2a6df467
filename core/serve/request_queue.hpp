// SPDX-License-Identifier: Apache-2.0
// The queue of requests and runs: which entry gets which replica next. A state machine without threads, locks
// or clock; after construction only the heap of deadlines allocates.
//
// An entry wants any instance, a specific one, or all of them (a run). All entries share one order: higher
// priority first, then earlier arrival.
//
// Invariants:
// - An idle instance takes the first entry that it can take, unless an entry for all instances is ahead of
//   that.
// - An entry for all instances is granted when nothing is ahead of it and no instance is busy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "core/base/memory.hpp"
#include "core/serve/lines.hpp"

namespace dist {

inline constexpr int kAnyInstance = -1;
inline constexpr int kAllInstances = -2;

class RequestQueue {
 public:
  class Entry : public Queued {
   public:
    int wants = kAnyInstance;  // or the number of an instance, or kAllInstances
    bool unlimited = false;    // does not count towards the limit and is never refused
  };

  // `most`: maximum number of queued entries for single instances.
  RequestQueue(Memory& memory, int num_instances, std::size_t most);

  void set_most(std::size_t most);
  // kGiven: `*out_instance` must execute it now.
  enum class Arrived { kQueued, kGiven, kFull };
  Arrived arrive(Entry& entry, int* out_instance) noexcept;
  // Queues an entry for all instances. Returns true if it was granted immediately.
  bool arrive_for_all(Entry& entry) noexcept;

  // The instance is idle and executes the returned entry; NULL: it waits.
  Entry* come(int instance) noexcept;
  // The instance stops waiting for a while. Returns false if it is not idle, for example because it was given
  // an entry.
  bool leave(int instance) noexcept;
  // The instance takes part from now on, not idle yet; or it has left permanently.
  void take_part(int instance) noexcept;
  void take_no_part(int instance) noexcept;
  bool takes_part(int instance) const noexcept { return at(instance).part; }

  // The owner of all instances returns them. Afterwards next() returns what the idle instances execute, one
  // entry per call, until it returns NULL.
  void give_back() noexcept { all_taken_ = false; }
  Entry* next(int* out_instance) noexcept;
  // The entry that gets all instances now; NULL: none. Must be called after every change.
  Entry* next_for_all() noexcept;

  // Removes a queued entry.
  void withdraw(Entry& entry) noexcept;
  // Any queued entry for a single instance, or for all; NULL: none left.
  Entry* any() noexcept;
  Entry* any_for_all() const noexcept { return of(all_.first()); }
  // The queued entry for a single instance with the earliest deadline; NULL: none.
  Entry* first_deadline() const noexcept { return of(deadlines_.first()); }

  bool has_instances() const noexcept { return parts_.load(std::memory_order_relaxed) > 0; }
  std::size_t most() const noexcept { return most_; }
  std::size_t queued() const noexcept { return queued_; }
  int busy() const noexcept { return busy_; }
  bool is_free(int instance) const noexcept { return at(instance).state == State::kFree; }
  bool is_busy(int instance) const noexcept { return at(instance).state == State::kBusy; }
  bool all_taken() const noexcept { return all_taken_; }

 private:
  enum class State : uint8_t { kAway, kFree, kBusy };
  struct Instance {
    State state = State::kAway;
    bool part = false;
    std::size_t in_free = 0;
    Lines own;  // entries for this instance only
  };

  const Instance& at(int instance) const noexcept { return instances_[static_cast<std::size_t>(instance)]; }
  Instance& at(int instance) noexcept { return instances_[static_cast<std::size_t>(instance)]; }
  Lines& lines_of(const Entry& entry) noexcept {
    return entry.wants == kAnyInstance ? any_ : at(entry.wants).own;
  }
  // The entry that an idle instance takes.
  Entry* candidate(const Instance& one) const noexcept {
    Entry* entry = of(any_.first());
    Entry* const own = of(one.own.first());
    if (own != nullptr && (entry == nullptr || own->before(*entry))) entry = own;
    return entry == nullptr || behind_all(*entry) ? nullptr : entry;
  }
  // Whether the entry must wait for one that wants all instances.
  bool behind_all(const Entry& entry) const noexcept {
    if (all_taken_) [[unlikely]]
      return true;
    const Queued* const all = all_.first();
    return all != nullptr && all->before(entry);
  }
  // Adds an entry for single instances, or removes it.
  void enqueue(Entry& entry) noexcept {
    lines_of(entry).add(entry);
    entry.queued = true;
    queued_ += entry.unlimited ? 0 : 1;
    deadlines_.add(entry);
  }
  void take_out(Entry& entry) noexcept {
    lines_of(entry).remove(entry);
    entry.queued = false;
    queued_ -= entry.unlimited ? 0 : 1;
    deadlines_.remove(entry);
  }
  void take_out_for_all(Entry& entry) noexcept {
    all_.remove(entry);
    entry.queued = false;
  }
  void leave_free(int instance) noexcept;
  void occupy(int instance) noexcept;
  void becomes_free(int instance) noexcept;
  static Entry* of(Queued* entry) noexcept { return static_cast<Entry*>(entry); }

  // The members that both arriving entries and instances change come first, and fit in one cache line together
  // with a lock in front of the queue.
  int busy_ = 0;
  uint32_t queued_ = 0;  // entries for single instances that count towards the limit
  Deadlines deadlines_;
  Lines any_;
  Lines all_;
  std::pmr::vector<Instance> instances_;
  std::pmr::vector<int> free_;  // the one that became idle last is at the end, because its caches are warm
  Deadlines::Heap heap_;
  std::atomic<int> parts_{0};  // read without the lock by has_instances()
  bool all_taken_ = false;
  // Only arriving entries use these, in a cache line of their own.
  std::byte apart_[64];
  std::size_t most_ = 0;
  uint64_t ticket_ = 0;
};

inline RequestQueue::Arrived RequestQueue::arrive(Entry& entry, int* out_instance) noexcept {
  entry.ticket = ++ticket_;
  // While a matching instance is idle, only entries behind a run can be queued for it.
  const bool any = entry.wants == kAnyInstance;
  const bool one_is_free = any ? !free_.empty() : at(entry.wants).state == State::kFree;
  if (one_is_free && !behind_all(entry)) {
    *out_instance = any ? free_.back() : entry.wants;
    occupy(*out_instance);
    return Arrived::kGiven;
  }
  if (queued_ >= most_ && !entry.unlimited) return Arrived::kFull;
  enqueue(entry);
  return Arrived::kQueued;
}

inline RequestQueue::Entry* RequestQueue::come(int instance) noexcept {
  Instance& one = at(instance);
  Entry* const entry = candidate(one);
  if (entry == nullptr) {
    becomes_free(instance);
    return nullptr;
  }
  take_out(*entry);
  if (one.state != State::kBusy) [[unlikely]]
    occupy(instance);
  return entry;
}

}  // namespace dist
