// SPDX-License-Identifier: Apache-2.0
// Lines: a queue ordered by priority, then by arrival. Deadlines: entries by deadline. Both link the entries
// themselves, so that only entries whose deadlines are out of order need memory, reserved in advance.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "core/base/intrusive_list.hpp"
#include "core/base/memory.hpp"

namespace dist {

inline constexpr int32_t kLeastPriority = -7;
inline constexpr int32_t kGreatestPriority = 7;

class Lines;
class Deadlines;

// The base of a queued entry.
class Queued : private ListLink<Lines>, private ListLink<Deadlines> {
 public:
  Queued() noexcept = default;
  Queued(const Queued&) = delete;
  Queued& operator=(const Queued&) = delete;

  int32_t priority = 0;
  int64_t deadline_ns = 0;  // of the host's clock; 0: none
  // Whether it is ahead of another entry.
  bool before(const Queued& other) const noexcept {
    return priority != other.priority ? priority > other.priority : ticket < other.ticket;
  }

  // The address of the entry that is or was behind it in its line, for prefetching only: there may be no entry.
  const void* behind() const noexcept { return ListLink<Lines>::behind(); }

  uint64_t ticket = 0;  // order of arrival
  bool queued = false;  // maintained by the users of Lines

 private:
  friend class Lines;
  friend class Deadlines;
  friend class IntrusiveList<Queued, Lines>;
  friend class IntrusiveList<Queued, Deadlines>;
  // Its place in the heap of deadlines, or one of these.
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  static constexpr std::size_t kInOrder = kNowhere - 1;
  std::size_t in_heap_ = kNowhere;
};

// FIFO within a priority.
class Lines {
 public:
  Queued* first() const noexcept { return filled_ == 0 ? nullptr : &line(greatest()).front(); }
  // The priority of the first entry; there must be one.
  int32_t greatest() const noexcept { return std::bit_width(filled_) - 1 + kLeastPriority; }
  bool empty() const noexcept { return filled_ == 0; }
  void add(Queued& entry) noexcept {
    line(entry.priority).push_back(entry);
    filled_ |= bit(entry.priority);
  }
  void remove(Queued& entry) noexcept {
    if (Line::remove(entry)) filled_ &= ~bit(entry.priority);
  }

 private:
  using Line = IntrusiveList<Queued, Lines>;
  static constexpr uint32_t kPlaces = 16;
  static_assert(kGreatestPriority < 8 && kLeastPriority > -8);
  static constexpr uint32_t bit(int32_t priority) noexcept {
    return uint32_t{1} << static_cast<uint32_t>(priority - kLeastPriority);
  }
  // Priority 0, which most entries have, comes first, in the cache line of `filled_`; -1 comes last.
  Line& line(int32_t priority) noexcept { return lines_[static_cast<uint32_t>(priority) % kPlaces]; }
  const Line& line(int32_t priority) const noexcept {
    return lines_[static_cast<uint32_t>(priority) % kPlaces];
  }

  uint32_t filled_ = 0;  // one bit per priority with entries
  Line lines_[kPlaces];
};

// Most entries arrive in the order of their deadlines, because they have the same timeout. These are linked in
// that order; the others are in a heap.
class Deadlines {
 public:
  using Heap = std::pmr::vector<Queued*>;
  // The heap must be constructed before the first use.
  explicit Deadlines(Heap* heap) noexcept : heap_(*heap) {}
  // Reserves memory for the maximum number of entries. Throws std::bad_alloc.
  void reserve(std::size_t most) { heap_.reserve(most); }
  // Does nothing if the entry has no deadline.
  void add(Queued& entry) noexcept {
    if (entry.deadline_ns == 0) return;
    if (!in_order_.empty() && in_order_.back().deadline_ns > entry.deadline_ns) return insert(entry);
    entry.in_heap_ = Queued::kInOrder;
    in_order_.push_back(entry);
  }
  // Does nothing if the entry is not here.
  void remove(Queued& entry) noexcept {
    if (entry.in_heap_ == Queued::kNowhere) return;
    if (entry.in_heap_ != Queued::kInOrder) return take_out(entry);
    entry.in_heap_ = Queued::kNowhere;
    in_order_.remove(entry);
  }
  Queued* first() const noexcept {
    Queued* const first = in_order_.first();
    if (heap_.empty()) return first;
    Queued* const other = heap_.front();
    return first == nullptr || other->deadline_ns < first->deadline_ns ? other : first;
  }

 private:
  void insert(Queued& entry) noexcept;
  void take_out(Queued& entry) noexcept;
  void sift_up(std::size_t place) noexcept;
  void sift_down(std::size_t place) noexcept;
  void put(std::size_t place, Queued& entry) noexcept {
    heap_[place] = &entry;
    entry.in_heap_ = place;
  }

  IntrusiveList<Queued, Deadlines> in_order_;
  Heap& heap_;
};

}  // namespace dist
