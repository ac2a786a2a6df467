// SPDX-License-Identifier: Apache-2.0
#include "core/serve/batcher_list.hpp"

#include <utility>

#include "core/serve/batcher.hpp"

namespace dist {

void BatcherList::add(Batcher& batcher) noexcept {
  const std::lock_guard lock(mutex_);
  Batcher** at = &first_;
  while (*at != nullptr && (*at)->number == batcher.number) {
    ++batcher.number;
    at = &(*at)->next;
  }
  batcher.next = std::exchange(*at, &batcher);
}

void BatcherList::remove(Batcher& batcher) noexcept {
  const std::lock_guard lock(mutex_);
  Batcher** at = &first_;
  while (*at != &batcher) at = &(*at)->next;
  *at = batcher.next;
}

Ref<Batcher> BatcherList::at(std::size_t position) const noexcept {
  const std::lock_guard lock(mutex_);
  Batcher* at = first_;
  while (at != nullptr && position-- > 0) at = at->next;
  return Ref<Batcher>::share(at);
}

int64_t BatcherList::tend() noexcept {
  int64_t next_ns = 0;
  for (std::size_t i = 0;; ++i) {
    const Ref<Batcher> each = at(i);
    if (!each) return next_ns;
    const int64_t its_ns = each->tend();
    if (its_ns != 0 && (next_ns == 0 || its_ns < next_ns)) next_ns = its_ns;
  }
}

void BatcherList::end_all(const ErrorRecord& why) noexcept {
  for (std::size_t i = 0;; ++i) {
    const Ref<Batcher> each = at(i);
    if (!each) return;
    each->end_all(why);
  }
}

// No thread serves on the instance, so no item can join.
Item* BatcherList::leave_alone(int instance, Request& running) noexcept {
  Item* items = nullptr;
  const std::lock_guard lock(mutex_);
  for (Batcher* each = first_; each != nullptr; each = each->next)
    each->leave_alone(instance, running, &items);
  return items;
}

}  // namespace dist
