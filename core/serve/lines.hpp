// SPDX-License-Identifier: Apache-2.0
// Lines: who waits, by priority and arrival. DeadlineHeap: whose deadline comes first. Both of members that lie in what waits,
// so that waiting takes no memory but the heap's places.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "core/base/memory.hpp"

namespace dist {

inline constexpr int32_t kLeastPriority = -7;
inline constexpr int32_t kGreatestPriority = 7;

// A member of what waits.
class Queued {
 public:
  Queued() noexcept = default;
  Queued(const Queued&) = delete;
  Queued& operator=(const Queued&) = delete;

  int32_t priority = 0;
  int64_t deadline_ns = 0;  // of the host's clock; 0: none
  // Whether it comes before another one.
  bool before(const Queued& other) const noexcept {
    return priority != other.priority ? priority > other.priority : ticket < other.ticket;
  }

  uint64_t ticket = 0;  // the order of arrival
  bool queued = false;  // for those who use the lines

 private:
  friend class Lines;
  friend class DeadlineHeap;
  Queued* next_ = nullptr;
  Queued* previous_ = nullptr;
  std::size_t in_heap_ = kNowhere;
  static constexpr std::size_t kNowhere = ~std::size_t{0};
};

// First come, first served within a priority.
class Lines {
 public:
  Queued* first() const noexcept;
  bool empty() const noexcept { return filled_ == 0; }
  void add(Queued& entry) noexcept;
  void remove(Queued& entry) noexcept;

 private:
  static constexpr std::size_t kPriorities = kGreatestPriority - kLeastPriority + 1;
  struct Line {
    Queued* first = nullptr;
    Queued* last = nullptr;
  };
  std::array<Line, kPriorities> by_priority_;
  uint32_t filled_ = 0;  // a bit for each priority that has entries
};

class DeadlineHeap {
 public:
  explicit DeadlineHeap(Memory& memory) : places_(&memory) {}
  // For as many entries as will be in it at a time. Throws std::bad_alloc.
  void reserve(std::size_t most) { places_.reserve(most); }
  // Nothing where the entry has no deadline.
  void add(Queued& entry) noexcept;
  // Nothing where it is not in it.
  void remove(Queued& entry) noexcept;
  Queued* first() const noexcept { return places_.empty() ? nullptr : places_.front(); }

 private:
  void sift_up(std::size_t place) noexcept;
  void sift_down(std::size_t place) noexcept;
  void put(std::size_t place, Queued& entry) noexcept {
    places_[place] = &entry;
    entry.in_heap_ = place;
  }

  std::pmr::vector<Queued*> places_;
};

}  // namespace dist
