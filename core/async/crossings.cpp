// SPDX-License-Identifier: Apache-2.0
#include "core/async/crossings.hpp"

namespace dist {

void Crossings::add(Item& item) noexcept {
  if (item.linked()) return;
  items_.push_front(item);
  listed_.fetch_add(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Crossings::remove(Item& item) noexcept {
  if (!item.linked()) return;
  items_.remove(item);
  listed_.fetch_sub(1, std::memory_order_relaxed);
}

void Crossings::go_on() noexcept {
  for (Item& each : items_) {
    if (!each.go_on()) remove(each);
  }
}

void Crossings::advance() noexcept {
  if (listed_.load(std::memory_order_relaxed) == 0) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) go_on();
}

void Crossings::run_task(void* crossings, uint32_t) noexcept {
  auto& all = *static_cast<Crossings*>(crossings);
  // acq_rel, and before looking for work: a message that arrives after this submits another task.
  all.called_.exchange(false, std::memory_order_acq_rel);
  const std::lock_guard lock(all.mutex_);
  all.go_on();
}

void Crossings::wake() noexcept {
  if (helpers_ == nullptr) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (listed_.load(std::memory_order_relaxed) == 0) return;
  if (called_.exchange(true, std::memory_order_acq_rel)) return;
  if (!helpers_->submit(run_task, this, 0, 1).ok()) called_.store(false, std::memory_order_relaxed);
}

void Crossings::stop(const Group& group) noexcept {
  const std::lock_guard lock(mutex_);
  for (Item& each : items_) {
    if (&each.group() != &group) continue;
    each.stop();
    remove(each);
  }
}

}  // namespace dist
