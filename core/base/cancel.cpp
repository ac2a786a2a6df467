// SPDX-License-Identifier: Apache-2.0
#include "core/base/cancel.hpp"

#include "core/base/os/fork.hpp"
#include "core/base/text.hpp"

namespace dist {

Cancel::Cancel(Memory& memory) noexcept : Counted(memory), process_(process_id()) {}

bool Cancel::forked() const noexcept { return process_id() != process_; }

void Cancel::signal(const char* reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (signalled()) return;
  if (reason == nullptr || *reason == '\0') {
    copy_text(reason_, "`dist_cancel_signal()`"_m);
  } else {
    copy_shown(reason_, reason);
  }
  // A link is removed before it is notified, because its operation may be destroyed as soon as this releases
  // the mutex.
  while (Link* const link = links_.pop_front()) link->cancelled(reason_);
  // release: publishes the reason. A thread that sees the flag knows that all links have been notified; a
  // thread that adds a link waits for the mutex.
  signalled_.store(true, std::memory_order_release);
}

bool Cancel::add(Link& link) noexcept {
  const std::lock_guard lock(mutex_);
  if (signalled()) return false;
  links_.push_front(link);
  return true;
}

void Cancel::remove(Link& link) noexcept {
  if (memory().forked()) return;
  const std::lock_guard lock(mutex_);
  if (link.linked()) links_.remove(link);
}

}  // namespace dist
