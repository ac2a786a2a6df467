// SPDX-License-Identifier: Apache-2.0
// Lines: a queue ordered by priority, then by arrival. Deadlines: entries by deadline. Both link the entries
// themselves, so that only entries whose deadlines are out of order need memory, reserved in advance.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "core/base/memory.hpp"

namespace dist {

inline constexpr int32_t kLeastPriority = -7;
inline constexpr int32_t kGreatestPriority = 7;

// The base of a queued entry.
class Queued {
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

  // The entry behind it in its line; NULL: none.
  const Queued* behind() const noexcept { return next_; }

  uint64_t ticket = 0;  // order of arrival
  bool queued = false;  // maintained by the users of Lines

 private:
  friend class Lines;
  friend class Deadlines;
  Queued* next_ = nullptr;
  Queued* previous_ = nullptr;
  // Its place in the heap of deadlines, or one of these.
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  static constexpr std::size_t kInOrder = kNowhere - 1;
  std::size_t in_heap_ = kNowhere;
  Queued* sooner_ = nullptr;
  Queued* later_ = nullptr;
};

// FIFO within a priority.
class Lines {
 public:
  Queued* first() const noexcept {
    if (filled_ == 0) return nullptr;
    return line(static_cast<std::size_t>(std::bit_width(filled_)) - 1).first;
  }
  bool empty() const noexcept { return filled_ == 0; }
  void add(Queued& entry) noexcept {
    const auto which = static_cast<std::size_t>(entry.priority - kLeastPriority);
    Line& to = line(which);
    entry.next_ = nullptr;
    entry.previous_ = to.last;
    (to.last == nullptr ? to.first : to.last->next_) = &entry;
    to.last = &entry;
    filled_ |= uint32_t{1} << which;
  }
  void remove(Queued& entry) noexcept {
    const auto which = static_cast<std::size_t>(entry.priority - kLeastPriority);
    Line& from = line(which);
    (entry.previous_ == nullptr ? from.first : entry.previous_->next_) = entry.next_;
    (entry.next_ == nullptr ? from.last : entry.next_->previous_) = entry.previous_;
    if (from.first == nullptr) filled_ &= ~(uint32_t{1} << which);
  }

 private:
  static constexpr std::size_t kPriorities = kGreatestPriority - kLeastPriority + 1;
  static constexpr std::size_t kNormal = -kLeastPriority;
  struct Line {
    Queued* first = nullptr;
    Queued* last = nullptr;
  };
  // Priority 0, which most entries have, comes first, in the cache line of `filled_`.
  Line& line(std::size_t which) noexcept { return lines_[place(which)]; }
  const Line& line(std::size_t which) const noexcept { return lines_[place(which)]; }
  static constexpr std::size_t place(std::size_t which) noexcept {
    return which >= kNormal ? which - kNormal : which + kPriorities - kNormal;
  }

  uint32_t filled_ = 0;  // one bit per priority with entries
  std::array<Line, kPriorities> lines_;
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
    entry.in_heap_ = Queued::kNowhere;
    if (entry.deadline_ns == 0) return;
    if (last_ != nullptr && last_->deadline_ns > entry.deadline_ns) return insert(entry);
    entry.in_heap_ = Queued::kInOrder;
    entry.later_ = nullptr;
    entry.sooner_ = last_;
    (last_ == nullptr ? first_ : last_->later_) = &entry;
    last_ = &entry;
  }
  // Does nothing if the entry is not here.
  void remove(Queued& entry) noexcept {
    if (entry.in_heap_ == Queued::kNowhere) return;
    if (entry.in_heap_ != Queued::kInOrder) return take_out(entry);
    entry.in_heap_ = Queued::kNowhere;
    (entry.sooner_ == nullptr ? first_ : entry.sooner_->later_) = entry.later_;
    (entry.later_ == nullptr ? last_ : entry.later_->sooner_) = entry.sooner_;
  }
  Queued* first() const noexcept {
    if (heap_.empty()) return first_;
    Queued* const other = heap_.front();
    return first_ == nullptr || other->deadline_ns < first_->deadline_ns ? other : first_;
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

  Queued* first_ = nullptr;
  Queued* last_ = nullptr;
  Heap& heap_;
};

}  // namespace dist
