// SPDX-License-Identifier: Apache-2.0
#include "core/serve/request_queue.hpp"

#include <bit>
#include <utility>

namespace dist {

RequestQueue::Entry* RequestQueue::Lines::first() const noexcept {
  if (filled == 0) return nullptr;
  return by_priority[static_cast<std::size_t>(std::bit_width(filled)) - 1].first;
}

void RequestQueue::Lines::add(Entry& entry) noexcept {
  const auto which = static_cast<std::size_t>(entry.priority - kLeastPriority);
  Line& line = by_priority[which];
  entry.next_ = nullptr;
  entry.previous_ = line.last;
  (line.last == nullptr ? line.first : line.last->next_) = &entry;
  line.last = &entry;
  filled |= uint32_t{1} << which;
}

void RequestQueue::Lines::remove(Entry& entry) noexcept {
  const auto which = static_cast<std::size_t>(entry.priority - kLeastPriority);
  Line& line = by_priority[which];
  (entry.previous_ == nullptr ? line.first : entry.previous_->next_) = entry.next_;
  (entry.next_ == nullptr ? line.last : entry.next_->previous_) = entry.previous_;
  if (line.first == nullptr) filled &= ~(uint32_t{1} << which);
}

RequestQueue::RequestQueue(Memory& memory, int num_instances, std::size_t most)
    : instances_(static_cast<std::size_t>(num_instances), &memory), free_(&memory), heap_(&memory), most_(0) {
  free_.reserve(instances_.size());
  set_most(most);
}

void RequestQueue::set_most(std::size_t most) {
  heap_.reserve(most);
  most_ = most;
}

bool RequestQueue::before(const Entry& one, const Entry& other) noexcept {
  return one.priority != other.priority ? one.priority > other.priority : one.ticket_ < other.ticket_;
}

RequestQueue::Lines& RequestQueue::lines_of(const Entry& entry) noexcept {
  if (entry.wants == kAllInstances) return all_;
  return entry.wants == kAnyInstance ? any_ : at(entry.wants).own;
}

// Whether it has to wait for one that wants all.
bool RequestQueue::behind_all(const Entry& entry) const noexcept {
  const Entry* const all = all_.first();
  return all_taken_ || (all != nullptr && before(*all, entry));
}

// What a free instance takes.
RequestQueue::Entry* RequestQueue::candidate(int instance) const noexcept {
  Entry* entry = any_.first();
  Entry* const own = at(instance).own.first();
  if (own != nullptr && (entry == nullptr || before(*own, *entry))) entry = own;
  return entry == nullptr || behind_all(*entry) ? nullptr : entry;
}

void RequestQueue::enqueue(Entry& entry) noexcept {
  lines_of(entry).add(entry);
  entry.queued_ = true;
  if (entry.wants == kAllInstances) return;
  ++queued_;
  if (entry.wants != kAnyInstance) ++own_queued_;
  if (entry.deadline_ns == 0) return;
  heap_.push_back(&entry);  // within what is reserved
  entry.in_heap_ = heap_.size() - 1;
  sift_up(entry.in_heap_);
}

void RequestQueue::take_out(Entry& entry) noexcept {
  lines_of(entry).remove(entry);
  entry.queued_ = false;
  if (entry.wants == kAllInstances) return;
  --queued_;
  if (entry.wants != kAnyInstance) --own_queued_;
  if (entry.deadline_ns == 0) return;
  const std::size_t hole = entry.in_heap_;
  Entry* const last = heap_.back();
  heap_.pop_back();
  if (last == &entry) return;
  put(hole, *last);
  sift_up(hole);
  sift_down(last->in_heap_);
}

void RequestQueue::sift_up(std::size_t place) noexcept {
  Entry& entry = *heap_[place];
  while (place > 0) {
    const std::size_t parent = (place - 1) / 2;
    if (heap_[parent]->deadline_ns <= entry.deadline_ns) break;
    put(std::exchange(place, parent), *heap_[parent]);
  }
  put(place, entry);
}

void RequestQueue::sift_down(std::size_t place) noexcept {
  Entry& entry = *heap_[place];
  for (std::size_t child; (child = 2 * place + 1) < heap_.size(); place = child) {
    if (child + 1 < heap_.size() && heap_[child + 1]->deadline_ns < heap_[child]->deadline_ns) ++child;
    if (entry.deadline_ns <= heap_[child]->deadline_ns) break;
    put(place, *heap_[child]);
  }
  put(place, entry);
}

RequestQueue::Entry& RequestQueue::occupy(int instance, Entry& entry) noexcept {
  Instance& one = at(instance);
  if (one.state == State::kFree) leave_free(instance);
  one.state = State::kBusy;
  ++busy_;
  return entry;
}

void RequestQueue::leave_free(int instance) noexcept {
  Instance& one = at(instance);
  at(free_.back()).in_free = one.in_free;
  free_[one.in_free] = free_.back();
  free_.pop_back();
  one.state = State::kAway;
}

RequestQueue::Arrived RequestQueue::arrive(Entry& entry, int* out_instance) noexcept {
  entry.ticket_ = ++ticket_;
  // Where one is free, nobody who is not behind an entry that wants all is queued for it.
  const bool any = entry.wants == kAnyInstance;
  const bool one_is_free = any ? !free_.empty() : at(entry.wants).state == State::kFree;
  if (one_is_free && !behind_all(entry)) {
    *out_instance = any ? free_.back() : entry.wants;
    (void)occupy(*out_instance, entry);
    return Arrived::kGiven;
  }
  if (queued_ >= most_) return Arrived::kFull;
  enqueue(entry);
  return Arrived::kQueued;
}

bool RequestQueue::arrive_for_all(Entry& entry) noexcept {
  entry.ticket_ = ++ticket_;
  entry.wants = kAllInstances;
  enqueue(entry);
  return next_for_all() == &entry;
}

RequestQueue::Entry* RequestQueue::come(int instance) noexcept {
  Instance& one = at(instance);
  if (one.state == State::kBusy) --busy_;
  one.state = State::kAway;
  if (Entry* const entry = candidate(instance); entry != nullptr) {
    take_out(*entry);
    return &occupy(instance, *entry);
  }
  one.state = State::kFree;
  one.in_free = free_.size();
  free_.push_back(instance);  // within what is reserved
  return nullptr;
}

bool RequestQueue::leave(int instance) noexcept {
  if (at(instance).state != State::kFree) return false;
  leave_free(instance);
  return true;
}

void RequestQueue::take_part(int instance) noexcept {
  if (std::exchange(at(instance).part, true)) return;
  ++parts_;
}

void RequestQueue::take_no_part(int instance) noexcept {
  Instance& one = at(instance);
  if (one.state == State::kFree) leave_free(instance);
  if (one.state == State::kBusy) --busy_;
  one.state = State::kAway;
  if (std::exchange(one.part, false)) --parts_;
}

RequestQueue::Entry* RequestQueue::next(int* out_instance) noexcept {
  for (std::size_t i = free_.size(); i-- > 0;) {
    Entry* const entry = candidate(free_[i]);
    if (entry == nullptr) continue;
    take_out(*entry);
    *out_instance = free_[i];
    return &occupy(*out_instance, *entry);
  }
  return nullptr;
}

RequestQueue::Entry* RequestQueue::next_for_all() noexcept {
  Entry* const entry = all_.first();
  if (entry == nullptr || all_taken_ || busy_ > 0) return nullptr;
  // Those before it that nobody is there to take hold up nobody.
  if (parts_ > 0 && any_.first() != nullptr && before(*any_.first(), *entry)) return nullptr;
  for (std::size_t i = 0; own_queued_ > 0 && i < instances_.size(); ++i) {
    const Entry* const own = instances_[i].own.first();
    if (instances_[i].part && own != nullptr && before(*own, *entry)) return nullptr;
  }
  take_out(*entry);
  all_taken_ = true;
  return entry;
}

void RequestQueue::withdraw(Entry& entry) noexcept { take_out(entry); }

RequestQueue::Entry* RequestQueue::any() noexcept {
  if (Entry* const entry = any_.first(); entry != nullptr) return entry;
  for (std::size_t i = 0; own_queued_ > 0 && i < instances_.size(); ++i) {
    if (Entry* const own = instances_[i].own.first(); own != nullptr) return own;
  }
  return nullptr;
}

}  // namespace dist
