// SPDX-License-Identifier: Apache-2.0
// Lines: a queue ordered by priority, then by arrival. DeadlineHeap: entries by deadline. Both link the
// entries themselves, so that only the heap needs memory, reserved in advance.
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
  friend class DeadlineHeap;
  Queued* next_ = nullptr;
  Queued* previous_ = nullptr;
  std::size_t in_heap_ = kNowhere;
  static constexpr std::size_t kNowhere = ~std::size_t{0};
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

class DeadlineHeap {
 public:
  explicit DeadlineHeap(Memory& memory) : places_(&memory) {}
  // Reserves memory for the maximum number of entries. Throws std::bad_alloc.
  void reserve(std::size_t most) { places_.reserve(most); }
  // Does nothing if the entry has no deadline.
  void add(Queued& entry) noexcept {
    entry.in_heap_ = Queued::kNowhere;
    if (entry.deadline_ns != 0) insert(entry);
  }
  // Does nothing if the entry is not in the heap.
  void remove(Queued& entry) noexcept {
    if (entry.in_heap_ != Queued::kNowhere) take_out(entry);
  }
  Queued* first() const noexcept { return places_.empty() ? nullptr : places_.front(); }

 private:
  void insert(Queued& entry) noexcept;
  void take_out(Queued& entry) noexcept;
  void sift_up(std::size_t place) noexcept;
  void sift_down(std::size_t place) noexcept;
  void put(std::size_t place, Queued& entry) noexcept {
    places_[place] = &entry;
    entry.in_heap_ = place;
  }

  std::pmr::vector<Queued*> places_;
};

}  // namespace dist
