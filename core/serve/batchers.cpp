// SPDX-License-Identifier: Apache-2.0
// Instances: the interface for batchers, whose steps are queued like requests.
#include <utility>

#include "core/serve/batcher.hpp"
#include "core/serve/instances.hpp"

namespace dist {

void Instances::add(Batcher& batcher) noexcept {
  const std::lock_guard lock(batchers_mutex_);
  Batcher** at = &batchers_;
  while (*at != nullptr && (*at)->number == batcher.number) {
    ++batcher.number;
    at = &(*at)->next;
  }
  batcher.next = std::exchange(*at, &batcher);
}

void Instances::remove(Batcher& batcher) noexcept {
  const std::lock_guard lock(batchers_mutex_);
  Batcher** at = &batchers_;
  while (*at != &batcher) at = &(*at)->next;
  *at = batcher.next;
}

// Returns a reference, because no host function may be called under the mutex.
Ref<Batcher> Instances::batcher(std::size_t which) const noexcept {
  const std::lock_guard lock(batchers_mutex_);
  Batcher* at = batchers_;
  while (at != nullptr && which-- > 0) at = at->next;
  return Ref<Batcher>::share(at);
}

void Instances::enqueue_step(Request& step) noexcept {
  const std::lock_guard lock(mutex_);
  int instance = 0;
  if (queue_.arrive(step, &instance) == RequestQueue::Arrived::kGiven) give(instance, step);
}

bool Instances::withdraw_step(Request& step) noexcept {
  const std::lock_guard lock(mutex_);
  if (!step.queued) return false;
  withdraw(step);
  return true;
}

void Instances::raise_step(Request& step, int32_t priority) noexcept {
  const std::lock_guard lock(mutex_);
  if (!step.queued) return;
  queue_.withdraw(step);
  step.priority = priority;
  int instance = 0;
  if (queue_.arrive(step, &instance) == RequestQueue::Arrived::kGiven) give(instance, step);
}

}  // namespace dist
