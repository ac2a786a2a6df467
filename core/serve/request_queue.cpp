// SPDX-License-Identifier: Apache-2.0
#include "core/serve/request_queue.hpp"

#include <utility>

namespace dist {

RequestQueue::RequestQueue(Memory& memory, int num_instances, std::size_t most)
    : deadlines_(&heap_),
      instances_(static_cast<std::size_t>(num_instances), &memory),
      free_(&memory),
      heap_(&memory),
      most_(0) {
  free_.reserve(instances_.size());
  set_most(most);
}

void RequestQueue::set_most(std::size_t most) {
  deadlines_.reserve(most);
  most_ = most;
}

inline Lines& RequestQueue::lines_of(const Entry& entry) noexcept {
  if (entry.wants == kAllInstances) return all_;
  return entry.wants == kAnyInstance ? any_ : at(entry.wants).own;
}

// Whether the entry must wait for one that wants all instances.
inline bool RequestQueue::behind_all(const Entry& entry) const noexcept {
  const Queued* const all = all_.first();
  return all_taken_ || (all != nullptr && all->before(entry));
}

// The entry that an idle instance takes.
inline RequestQueue::Entry* RequestQueue::candidate(int instance) const noexcept {
  Entry* entry = of(any_.first());
  Entry* const own = of(at(instance).own.first());
  if (own != nullptr && (entry == nullptr || own->before(*entry))) entry = own;
  return entry == nullptr || behind_all(*entry) ? nullptr : entry;
}

inline void RequestQueue::enqueue(Entry& entry) noexcept {
  lines_of(entry).add(entry);
  entry.queued = true;
  if (entry.wants == kAllInstances) return;
  if (!entry.unlimited) ++queued_;
  if (entry.wants != kAnyInstance) ++own_queued_;
  deadlines_.add(entry);
}

inline void RequestQueue::take_out(Entry& entry) noexcept {
  lines_of(entry).remove(entry);
  entry.queued = false;
  if (entry.wants == kAllInstances) return;
  if (!entry.unlimited) --queued_;
  if (entry.wants != kAnyInstance) --own_queued_;
  deadlines_.remove(entry);
}

inline RequestQueue::Entry& RequestQueue::occupy(int instance, Entry& entry) noexcept {
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
  entry.ticket = ++ticket_;
  // While a matching instance is idle, only entries behind a run can be queued for it.
  const bool any = entry.wants == kAnyInstance;
  const bool one_is_free = any ? !free_.empty() : at(entry.wants).state == State::kFree;
  if (one_is_free && !behind_all(entry)) {
    *out_instance = any ? free_.back() : entry.wants;
    (void)occupy(*out_instance, entry);
    return Arrived::kGiven;
  }
  if (queued_ >= most_ && !entry.unlimited) return Arrived::kFull;
  enqueue(entry);
  return Arrived::kQueued;
}

bool RequestQueue::arrive_for_all(Entry& entry) noexcept {
  entry.ticket = ++ticket_;
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
  free_.push_back(instance);  // the capacity was reserved
  return nullptr;
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
    Entry* const entry = candidate(free_[i]);
    if (entry == nullptr) continue;
    take_out(*entry);
    *out_instance = free_[i];
    return &occupy(*out_instance, *entry);
  }
  return nullptr;
}

RequestQueue::Entry* RequestQueue::next_for_all() noexcept {
  Entry* const entry = of(all_.first());
  if (entry == nullptr || all_taken_ || busy_ > 0) return nullptr;
  // Entries ahead of it do not count if no instance takes part that could execute them.
  if (has_instances() && any_.first() != nullptr && any_.first()->before(*entry)) return nullptr;
  for (std::size_t i = 0; own_queued_ > 0 && i < instances_.size(); ++i) {
    const Queued* const own = instances_[i].own.first();
    if (instances_[i].part && own != nullptr && own->before(*entry)) return nullptr;
  }
  take_out(*entry);
  all_taken_ = true;
  return entry;
}

void RequestQueue::withdraw(Entry& entry) noexcept { take_out(entry); }

RequestQueue::Entry* RequestQueue::any() noexcept {
  if (Entry* const entry = of(any_.first()); entry != nullptr) return entry;
  for (std::size_t i = 0; own_queued_ > 0 && i < instances_.size(); ++i) {
    if (Entry* const own = of(instances_[i].own.first()); own != nullptr) return own;
  }
  return nullptr;
}

}  // namespace dist
