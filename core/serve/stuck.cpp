// SPDX-License-Identifier: Apache-2.0
#include "core/serve/stuck.hpp"

#include <utility>

#include "core/base/os/thread.hpp"

namespace dist {

void Stuck::end() noexcept {
  // Waits for the thread that abandons this one, which calls no host function.
  while (!has_all_.load(std::memory_order_acquire)) yield_this_thread();
  // Before the instance's state, which these may use.
  while (items_ != nullptr) std::exchange(items_, items_->next_to_end)->come_back();
  if (step_ != nullptr) step_->come_back();
  options_.destroy_state_in(*pool_, "dist_instances_close");
  InnerPool::destroy(std::exchange(pool_, nullptr));
  count_.fetch_sub(1, std::memory_order_release);
  release();
}

}  // namespace dist
