// SPDX-License-Identifier: Apache-2.0
#include "core/serve/request_queue.hpp"

#include <utility>

namespace dist {

RequestQueue::RequestQueue(Memory& memory, int num_instances, std::size_t most)
    : deadlines_(&heap_),
      instances_(static_cast<std::size_t>(num_instances), &memory),
      free_(&memory),
      heap_(&memory) {
  free_.reserve(instances_.size());
  set_most(most);
}

void RequestQueue::set_most(std::size_t most) {
  deadlines_.reserve(most);
  most_ = most;
}

// An instance that is not busy gets an entry.
void RequestQueue::occupy(int instance) noexcept {
  Instance& one = at(instance);
  if (one.state == State::kFree) leave_free(instance);
  one.state = State::kBusy;
  ++busy_;
}

// The instance is idle and waits for an entry.
void RequestQueue::becomes_free(int instance) noexcept {
  Instance& one = at(instance);
  if (one.state == State::kBusy) --busy_;
  one.state = State::kFree;
  one.in_free = free_.size();
  free_.push_back(instance);  // the capacity was reserved
}

void RequestQueue::leave_free(int instance) noexcept {
  Instance& one = at(instance);
  at(free_.back()).in_free = one.in_free;
  free_[one.in_free] = free_.back();
  free_.pop_back();
  one.state = State::kAway;
}

bool RequestQueue::arrive_for_all(Entry& entry) noexcept {
  entry.ticket = ++ticket_;
  entry.wants = kAllInstances;
  entry.queued = true;
  all_.add(entry);
  return next_for_all() == &entry;
}

bool RequestQueue::leave(int instance) noexcept {
  if (at(instance).state != State::kFree) return false;
  leave_free(instance);
  return true;
}

void RequestQueue::take_part(int instance) noexcept {
  if (std::exchange(at(instance).part, true)) return;
  parts_.fetch_add(1, std::memory_order_relaxed);
}

void RequestQueue::take_no_part(int instance) noexcept {
  Instance& one = at(instance);
  if (one.state == State::kFree) leave_free(instance);
  if (one.state == State::kBusy) --busy_;
  one.state = State::kAway;
  if (std::exchange(one.part, false)) parts_.fetch_sub(1, std::memory_order_relaxed);
}

RequestQueue::Entry* RequestQueue::next(int* out_instance) noexcept {
  for (std::size_t i = free_.size(); i-- > 0;) {
    Entry* const entry = candidate(at(free_[i]));
    if (entry == nullptr) continue;
    take_out(*entry);
    *out_instance = free_[i];
    occupy(*out_instance);
    return entry;
  }
  return nullptr;
}

RequestQueue::Entry* RequestQueue::next_for_all() noexcept {
  Entry* const entry = of(all_.first());
  if (entry == nullptr || all_taken_ || busy_ > 0) return nullptr;
  // Entries ahead of it do not count if no instance takes part that could execute them.
  if (has_instances() && any_.first() != nullptr && any_.first()->before(*entry)) return nullptr;
  for (const Instance& one : instances_) {
    const Queued* const own = one.own.first();
    if (one.part && own != nullptr && own->before(*entry)) return nullptr;
  }
  take_out_for_all(*entry);
  all_taken_ = true;
  return entry;
}

void RequestQueue::withdraw(Entry& entry) noexcept {
  entry.wants == kAllInstances ? take_out_for_all(entry) : take_out(entry);
}

RequestQueue::Entry* RequestQueue::any() noexcept {
  if (Entry* const entry = of(any_.first()); entry != nullptr) return entry;
  for (const Instance& one : instances_) {
    if (Entry* const own = of(one.own.first()); own != nullptr) return own;
  }
  return nullptr;
}

}  // namespace dist
