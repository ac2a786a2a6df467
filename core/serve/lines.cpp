// SPDX-License-Identifier: Apache-2.0
#include "core/serve/lines.hpp"

#include <bit>
#include <utility>

namespace dist {

Queued* Lines::first() const noexcept {
  if (filled_ == 0) return nullptr;
  return by_priority_[static_cast<std::size_t>(std::bit_width(filled_)) - 1].first;
}

void Lines::add(Queued& entry) noexcept {
  const auto which = static_cast<std::size_t>(entry.priority - kLeastPriority);
  Line& line = by_priority_[which];
  entry.next_ = nullptr;
  entry.previous_ = line.last;
  (line.last == nullptr ? line.first : line.last->next_) = &entry;
  line.last = &entry;
  filled_ |= uint32_t{1} << which;
}

void Lines::remove(Queued& entry) noexcept {
  const auto which = static_cast<std::size_t>(entry.priority - kLeastPriority);
  Line& line = by_priority_[which];
  (entry.previous_ == nullptr ? line.first : entry.previous_->next_) = entry.next_;
  (entry.next_ == nullptr ? line.last : entry.next_->previous_) = entry.previous_;
  if (line.first == nullptr) filled_ &= ~(uint32_t{1} << which);
}

void DeadlineHeap::add(Queued& entry) noexcept {
  entry.in_heap_ = Queued::kNowhere;
  if (entry.deadline_ns == 0) return;
  places_.push_back(&entry);  // the capacity was reserved
  entry.in_heap_ = places_.size() - 1;
  sift_up(entry.in_heap_);
}

void DeadlineHeap::remove(Queued& entry) noexcept {
  const std::size_t hole = std::exchange(entry.in_heap_, Queued::kNowhere);
  if (hole == Queued::kNowhere) return;
  Queued* const last = places_.back();
  places_.pop_back();
  if (last == &entry) return;
  put(hole, *last);
  sift_up(hole);
  sift_down(last->in_heap_);
}

void DeadlineHeap::sift_up(std::size_t place) noexcept {
  Queued& entry = *places_[place];
  while (place > 0) {
    const std::size_t parent = (place - 1) / 2;
    if (places_[parent]->deadline_ns <= entry.deadline_ns) break;
    put(std::exchange(place, parent), *places_[parent]);
  }
  put(place, entry);
}

void DeadlineHeap::sift_down(std::size_t place) noexcept {
  Queued& entry = *places_[place];
  for (std::size_t child; (child = 2 * place + 1) < places_.size(); place = child) {
    if (child + 1 < places_.size() && places_[child + 1]->deadline_ns < places_[child]->deadline_ns) ++child;
    if (entry.deadline_ns <= places_[child]->deadline_ns) break;
    put(place, *places_[child]);
  }
  put(place, entry);
}

}  // namespace dist
