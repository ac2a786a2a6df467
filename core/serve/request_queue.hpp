// SPDX-License-Identifier: Apache-2.0
// RequestQueue: who waits for which replicas, and who comes next. A state machine: no thread, no lock, no clock and
// no memory of its own after it has been made, but for the heap of deadlines.
//
// An entry wants any one instance, a certain one, or all of them (a run). Entries stand in one order: the greater
// priority first, then who came first. An instance that is free takes the first entry that it may take, unless an
// entry that wants all stands before that. Who wants all gets them when nobody stands before it and no instance is busy.
#pragma once

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
    int wants = kAnyInstance;  // or the number of one, or kAllInstances
    bool unlimited = false;    // it is not counted, and never refused
  };

  // `most`: entries for one instance that may be queued.
  RequestQueue(Memory& memory, int num_instances, std::size_t most);

  void set_most(std::size_t most);
  // What comes of an arrival: it is queued, or given to `*out_instance` at once.
  enum class Arrived { kQueued, kGiven, kFull };
  Arrived arrive(Entry& entry, int* out_instance) noexcept;
  // One that wants all. True: it has them.
  bool arrive_for_all(Entry& entry) noexcept;

  // An instance is free, and takes what this returns; NULL: it waits.
  Entry* come(int instance) noexcept;
  // It goes away for a while. False: it has been given something, or is not free.
  bool leave(int instance) noexcept;
  // It has come for the first time, or for good no longer takes part; it is not free.
  void take_part(int instance) noexcept;
  void take_no_part(int instance) noexcept;
  bool takes_part(int instance) const noexcept { return at(instance).part; }

  // Who wanted all has them no longer. Then next() says what the free instances take, until it is NULL.
  void give_back() noexcept { all_taken_ = false; }
  Entry* next(int* out_instance) noexcept;
  // Whoever gets all instances now; NULL: nobody. To be asked after every change.
  Entry* next_for_all() noexcept;

  // Takes a queued entry out.
  void withdraw(Entry& entry) noexcept;
  // Any queued entry for one instance, or for all; NULL: none is left.
  Entry* any() noexcept;
  Entry* any_for_all() const noexcept { return of(all_.first()); }
  // The queued entry for one instance whose deadline is first; NULL: none has one.
  Entry* first_deadline() const noexcept { return of(heap_.first()); }

  bool has_instances() const noexcept { return parts_ > 0; }
  std::size_t most() const noexcept { return most_; }
  std::size_t queued() const noexcept { return queued_; }
  int busy() const noexcept { return busy_; }
  bool is_free(int instance) const noexcept { return at(instance).state == State::kFree; }
  bool is_busy(int instance) const noexcept { return at(instance).state == State::kBusy; }
  bool all_taken() const noexcept { return all_taken_; }

 private:
  enum class State : uint8_t { kAway, kFree, kBusy };
  struct Instance {
    Lines own;  // of entries that want it alone
    State state = State::kAway;
    bool part = false;
    std::size_t in_free = 0;
  };

  const Instance& at(int instance) const noexcept { return instances_[static_cast<std::size_t>(instance)]; }
  Instance& at(int instance) noexcept { return instances_[static_cast<std::size_t>(instance)]; }
  Lines& lines_of(const Entry& entry) noexcept;
  Entry* candidate(int instance) const noexcept;
  void enqueue(Entry& entry) noexcept;
  void take_out(Entry& entry) noexcept;
  void leave_free(int instance) noexcept;
  Entry& occupy(int instance, Entry& entry) noexcept;
  bool behind_all(const Entry& entry) const noexcept;
  static Entry* of(Queued* entry) noexcept { return static_cast<Entry*>(entry); }

  Lines any_;
  Lines all_;
  std::pmr::vector<Instance> instances_;
  std::pmr::vector<int> free_;  // the one that became free last at the end: its caches are warm
  DeadlineHeap heap_;
  std::size_t most_;
  std::size_t queued_ = 0;      // for one instance, and counted
  std::size_t own_queued_ = 0;  // for a certain one
  int busy_ = 0;
  int parts_ = 0;
  bool all_taken_ = false;
  uint64_t ticket_ = 0;
};

}  // namespace dist
