// SPDX-License-Identifier: Apache-2.0
// BatchQueue: which items wait, which an instance has, and who is in its next step. A state machine: no thread, no lock, no
// clock, and after it has been made no memory.
//
// Entries wait by bucket, in each by priority and then by arrival. An instance that forms a step (form()) takes a bucket in
// turn: its own items of that, and then those that wait, as far as there is room. A bucket whose entries wait may be joined
// once it is due: a step would be full of it, or the one that came first has waited long enough; or where the instance has
// items of it already. But room goes to the bucket with the one that comes first of all that are due.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/serve/lines.hpp"

namespace dist {

class BatchQueue {
 public:
  struct Options {
    int max_items = 32;        // of a step, and of an instance
    int64_t max_delay_ns = 0;  // how long an entry waits for others
    std::size_t max_waiting = 1024;
    int64_t max_bytes = 0;  // of an instance's items; 0: any number
    int num_buckets = 1;
  };
  class Entry : public Queued {
   public:
    int bucket = 0;
    int64_t bytes = 0;
    bool held = false;  // it is in no step for now
    bool told = false;  // it is to end, when its step is over
    // The instance that has it; -1: none.
    int instance() const noexcept { return instance_; }
    bool in_step() const noexcept { return in_step_; }

   private:
    friend class BatchQueue;
    int64_t came_ns_ = 0;
    Entry* older_ = nullptr;
    Entry* newer_ = nullptr;
    int instance_ = -1;
    bool in_step_ = false;
  };

  // Throws std::bad_alloc.
  BatchQueue(Memory& memory, int num_instances, const Options& options);

  // False: as many wait as may. Its bucket, bytes (within the limit), priority and deadline are set.
  bool arrive(Entry& entry, int64_t now_ns) noexcept;
  // It ends: it waits, or an instance has it.
  void leave(Entry& entry) noexcept;
  // The one whose deadline is first, in the queue or on an instance; NULL: none.
  Entry* first_deadline() const noexcept { return static_cast<Entry*>(deadlines_.first()); }
  // It has been told; the deadline counts no more.
  void tell(Entry& entry) noexcept;

  // Who is in the instance's next step, in order; `out` has room for max_items. 0: nobody. They are in it until end_step().
  std::size_t form(int instance, int64_t now_ns, std::span<Entry*> out) noexcept;
  void end_step(int instance) noexcept;
  bool is_stepping(int instance) const noexcept { return lane(instance).stepping; }

  // Whether the instance has items of its own for a step.
  bool has_own(int instance) const noexcept;
  // The instance's items, those in a step too.
  std::span<Entry* const> items(int instance) const noexcept { return lane(instance).items; }
  // Whether those who wait may begin a step, and the instance has room for the first of them.
  bool is_due(int64_t now_ns) const noexcept;
  bool could_join(int instance, int64_t now_ns) const noexcept;
  bool has_empty_instance() const noexcept { return empty_ > 0; }
  // When a bucket will be due by time alone, of those that are not due yet; 0: none.
  int64_t due_at(int64_t now_ns) const noexcept;
  // The greatest priority of those who wait, and of an instance's items.
  int32_t greatest_waiting() const noexcept;
  int32_t greatest_of(int instance) const noexcept;

  // Anyone who waits, and anyone whom an instance has; NULL: nobody is left.
  Entry* any_waiting() const noexcept;
  std::size_t num_waiting() const noexcept { return waiting_; }
  std::size_t num_active() const noexcept { return active_; }
  int num_instances() const noexcept { return static_cast<int>(lanes_.size()); }
  const Options& options() const noexcept { return options_; }

 private:
  struct Bucket {
    Lines lines;
    Entry* oldest = nullptr;
    Entry* newest = nullptr;
    std::size_t waiting = 0;
  };
  struct Lane {  // of an instance
    explicit Lane(Memory& memory) : items(&memory) {}
    std::pmr::vector<Entry*> items;  // in the order of joining
    int64_t bytes = 0;
    int turn = 0;  // the bucket that is looked at first
    bool stepping = false;
  };

  Lane& lane(int instance) noexcept { return lanes_[static_cast<std::size_t>(instance)]; }
  const Lane& lane(int instance) const noexcept { return lanes_[static_cast<std::size_t>(instance)]; }
  bool is_due(const Bucket& bucket, int64_t now_ns) const noexcept;
  bool is_first(const Bucket& bucket, int64_t now_ns) const noexcept;
  bool has_room(const Lane& lane, const Entry& entry) const noexcept;
  void join(Lane& lane, int instance, Entry& entry) noexcept;
  void take_out(Entry& entry) noexcept;

  const Options options_;
  std::pmr::vector<Bucket> buckets_;
  std::pmr::vector<Lane> lanes_;
  DeadlineHeap deadlines_;
  std::size_t waiting_ = 0;
  std::size_t active_ = 0;
  int empty_ = 0;  // instances without an item
  uint64_t ticket_ = 0;
};

}  // namespace dist
