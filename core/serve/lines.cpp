// SPDX-License-Identifier: Apache-2.0
#include "core/serve/lines.hpp"

#include <utility>

namespace dist {

void Deadlines::insert(Queued& entry) noexcept {
  heap_.push_back(&entry);  // the capacity was reserved
  entry.in_heap_ = heap_.size() - 1;
  sift_up(entry.in_heap_);
}

void Deadlines::take_out(Queued& entry) noexcept {
  const std::size_t hole = std::exchange(entry.in_heap_, Queued::kNowhere);
  Queued* const last = heap_.back();
  heap_.pop_back();
  if (last == &entry) return;
  put(hole, *last);
  sift_up(hole);
  sift_down(last->in_heap_);
}

void Deadlines::sift_up(std::size_t place) noexcept {
  Queued& entry = *heap_[place];
  while (place > 0) {
    const std::size_t parent = (place - 1) / 2;
    if (heap_[parent]->deadline_ns <= entry.deadline_ns) break;
    put(std::exchange(place, parent), *heap_[parent]);
  }
  put(place, entry);
}

void Deadlines::sift_down(std::size_t place) noexcept {
  Queued& entry = *heap_[place];
  for (std::size_t child; (child = 2 * place + 1) < heap_.size(); place = child) {
    if (child + 1 < heap_.size() && heap_[child + 1]->deadline_ns < heap_[child]->deadline_ns) ++child;
    if (entry.deadline_ns <= heap_[child]->deadline_ns) break;
    put(place, *heap_[child]);
  }
  put(place, entry);
}

}  // namespace dist
