// SPDX-License-Identifier: Apache-2.0
#include "core/serve/lines.hpp"

#include <utility>

namespace dist {

void DeadlineHeap::insert(Queued& entry) noexcept {
  places_.push_back(&entry);  // the capacity was reserved
  entry.in_heap_ = places_.size() - 1;
  sift_up(entry.in_heap_);
}

void DeadlineHeap::take_out(Queued& entry) noexcept {
  const std::size_t hole = std::exchange(entry.in_heap_, Queued::kNowhere);
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
