// SPDX-License-Identifier: Apache-2.0
// The items of a batcher: which ones wait, which instance has which, and which form the next step. A state
// machine without threads, locks or clock; it allocates only on construction.
//
// Items wait in buckets, each ordered by priority and then by arrival. To form a step, an instance picks a
// bucket round robin, takes its own items from it, and fills the remaining room with waiting ones.
//
// A bucket is due if its waiting items would fill a step, or if its oldest item has waited for max_delay_ns.
// Waiting items can join a step only if their bucket is due, or if the instance already has items of that
// bucket. Among the due buckets, the one whose first item comes first has precedence for the room of an
// instance.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "core/base/intrusive_list.hpp"
#include "core/base/memory.hpp"
#include "core/serve/lines.hpp"

namespace dist {

class BatchQueue {
 public:
  struct Options {
    int max_items = 32;        // maximum per step and per instance
    int64_t max_delay_ns = 0;  // how long an item waits for others
    std::size_t max_waiting = 1024;
    int64_t max_bytes = 0;  // maximum for the items of an instance; 0: no limit
    int num_buckets = 1;
  };
  class Entry : public Queued, private ListLink<BatchQueue> {
   public:
    int bucket = 0;
    int64_t bytes = 0;
    bool held = false;  // excluded from steps for now
    bool told = false;  // ends when its step is over
    // The instance that has it; -1: none.
    int instance() const noexcept { return instance_; }
    bool in_step() const noexcept { return in_step_; }

   private:
    friend class BatchQueue;
    friend class IntrusiveList<Entry, BatchQueue>;
    int64_t came_ns_ = 0;
    int instance_ = -1;
    bool in_step_ = false;
  };

  // Throws std::bad_alloc.
  BatchQueue(Memory& memory, int num_instances, const Options& options);

  // Adds an item, whose bucket, bytes (within the limit), priority and deadline are set. Returns false if the
  // queue is full.
  bool arrive(Entry& entry, int64_t now_ns) noexcept;
  // Removes an item that ends, whether it waits or an instance has it.
  void leave(Entry& entry) noexcept;
  // The item with the earliest deadline, waiting or on an instance; NULL: none.
  Entry* first_deadline() const noexcept { return static_cast<Entry*>(deadlines_.first()); }
  // Marks the item as told to end. Its deadline no longer counts.
  void tell(Entry& entry) noexcept;

  // Stores the items of the instance's next step in `out`, which has room for max_items, and returns their
  // number. They stay in the step until end_step().
  std::size_t form(int instance, int64_t now_ns, std::span<Entry*> out) noexcept;
  // Its items for which keeps() returns false leave.
  template <class Keeps>
  void end_step(int instance, Keeps&& keeps) noexcept {
    Lane& own = lane(instance);
    own.stepping = false;
    std::size_t kept = 0;
    for (Entry* const each : own.items) {
      if (std::exchange(each->in_step_, false) && !keeps(*each)) {
        deadlines_.remove(*each);
        detach(own, *each);
      } else {
        own.items[kept++] = each;
      }
    }
    if (kept == 0 && !own.items.empty()) ++empty_;
    own.items.resize(kept);
  }
  void end_step(int instance) noexcept {
    end_step(instance, [](const Entry&) { return true; });
  }
  bool is_stepping(int instance) const noexcept { return lane(instance).stepping; }

  // Whether the instance has items of its own that a step can process.
  bool has_own(int instance) const noexcept;
  // All items of the instance, including those in a step.
  std::span<Entry* const> items(int instance) const noexcept { return lane(instance).items; }
  // Whether waiting items can start a step, and whether the instance has room for the first of them.
  bool is_due(int64_t now_ns) const noexcept {
    for (const Bucket& each : buckets_) {
      if (is_due(each, now_ns)) return true;
    }
    return false;
  }
  bool could_join(int instance, int64_t now_ns) const noexcept;
  bool has_empty_instance() const noexcept { return empty_ > 0; }
  // When the next bucket becomes due because of its delay; 0: never.
  int64_t due_at(int64_t now_ns) const noexcept;
  // The highest priority among the waiting items and among the items of an instance.
  int32_t greatest_waiting() const noexcept {
    int32_t greatest = kLeastPriority;
    for (const Bucket& each : buckets_) {
      if (each.waiting != 0) greatest = std::max(greatest, each.lines.greatest());
    }
    return greatest;
  }
  int32_t greatest_of(int instance) const noexcept;

  // Any waiting item, or else any item of an instance; NULL: none left.
  Entry* any_waiting() const noexcept;
  std::size_t num_waiting() const noexcept { return waiting_; }
  std::size_t num_active() const noexcept { return active_; }
  int num_instances() const noexcept { return static_cast<int>(lanes_.size()); }
  const Options& options() const noexcept { return options_; }

 private:
  struct Bucket {
    Entry& oldest() const noexcept { return by_arrival.front(); }
    Lines lines;
    IntrusiveList<Entry, BatchQueue> by_arrival;
    std::size_t waiting = 0;
  };
  struct Lane {  // for each instance
    explicit Lane(Memory& memory) : items(&memory) {}
    std::pmr::vector<Entry*> items;  // in the order of joining
    int64_t bytes = 0;
    int turn = 0;  // the bucket to look at first
    bool stepping = false;
  };

  Lane& lane(int instance) noexcept { return lanes_[static_cast<std::size_t>(instance)]; }
  const Lane& lane(int instance) const noexcept { return lanes_[static_cast<std::size_t>(instance)]; }
  bool is_due(const Bucket& bucket, int64_t now_ns) const noexcept {
    if (bucket.waiting == 0) return false;
    return bucket.waiting >= static_cast<std::size_t>(options_.max_items) ||
           now_ns - bucket.oldest().came_ns_ >= options_.max_delay_ns;
  }
  bool is_first(const Bucket& bucket, int64_t now_ns) const noexcept;
  bool has_room(const Lane& lane, const Entry& entry) const noexcept;
  void join(Lane& lane, int instance, Entry& entry) noexcept;
  // Removes it from its bucket.
  void take_out(Entry& entry) noexcept {
    Bucket& bucket = buckets_[static_cast<std::size_t>(entry.bucket)];
    entry.queued = false;
    bucket.lines.remove(entry);
    bucket.by_arrival.remove(entry);
    --bucket.waiting;
    --waiting_;
  }
  // The entry is no longer among the instance's items.
  void detach(Lane& from, Entry& entry) noexcept {
    from.bytes -= entry.bytes;
    entry.instance_ = -1;
    --active_;
  }

  const Options options_;
  std::pmr::vector<Bucket> buckets_;
  std::pmr::vector<Lane> lanes_;
  Deadlines::Heap heap_;
  Deadlines deadlines_;
  std::size_t waiting_ = 0;
  std::size_t active_ = 0;
  int empty_ = 0;  // instances without items
  uint64_t ticket_ = 0;
};

}  // namespace dist
