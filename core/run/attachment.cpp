// SPDX-License-Identifier: Apache-2.0
// Replica: moving a function to another thread and back. Its own thread detaches from the function, the other
// thread attaches, works and detaches, and its own thread attaches again in order to return.
#include "core/run/replica.hpp"

#include <utility>

#include "core/run/replica_pool.hpp"

namespace dist {

Status Replica::detach() noexcept {
  DIST_TRY(check_own("dist_replica_detach"));
  Current& here = current();
  if (here.replica != this) {
    return failed_precondition(
        "`dist_replica_detach()`: this is the thread's default replica, which cannot be detached");
  }
  function_ = here;
  here = std::exchange(outside_, Current{});
  // A thread that had attached is outside again; the thread that will return from the function is not.
  if (!attached_) here.detached = this;
  attached_ = false;
  stay(kDetached);
  detached_.advance();
  return kOk;
}

Status Replica::check_attach() const noexcept {
  if (pool_.memory().forked()) return in_forked_child();
  const Current& here = current();
  if (here.replica != nullptr) {
    return failed_precondition(
        "`dist_replica_attach()`: the calling `thread` is already in the function of %s %d. Call "
        "`dist_replica_detach()` first.",
        here.replica->name().word(), here.replica->name().number());
  }
  if (here.entered + here.default_entered == 0) return kOk;
  return failed_precondition(
      "`dist_replica_attach()`: the calling `thread` is in a strategy's scope. Leave it first with "
      "`dist_scope_exit()`.");
}

Status Replica::attach() noexcept {
  DIST_TRY(check_attach());
  std::uintptr_t found = kDetached;
  // acquire: makes the effects of the previous thread visible.
  if (!thread_.compare_exchange_strong(found, this_thread(), std::memory_order_acquire)) {
    if (found == kNobody) return not_here("dist_replica_attach");
    return failed_precondition(
        "`dist_replica_attach()`: the function of %s %d runs on another thread. Call `dist_replica_detach()` "
        "there first.",
        name().word(), name().number());
  }
  watch_thread_end();
  Current& here = current();
  pool_.thread_comes(rank(), here.detached == this);
  outside_ = here;
  here = function_;
  attached_ = true;
  stay(this_thread());
  return kOk;
}

void Replica::come_back() noexcept {
  // Only the thread itself writes its own id. A load is cheaper than a compare-and-swap that fails.
  if (thread_.load(std::memory_order_relaxed) == this_thread()) return;
  for (;;) {
    // The acquire keeps this load before the checks, so a later change ends the sleep.
    const uint32_t seen = detached_.value.load(std::memory_order_acquire);
    std::uintptr_t found = kDetached;
    if (thread_.compare_exchange_strong(found, this_thread(), std::memory_order_acquire))
      return pool_.thread_comes(rank(), true);
    if (found == this_thread()) break;
    detached_.sleep(seen, -1, group().policy(),
                    [&] { return thread_.load(std::memory_order_seq_cst) == kDetached; });
  }
}

void Replica::leave_thread() noexcept {
  Current& here = current();
  if (std::exchange(attached_, false)) {
    here = std::exchange(outside_, Current{});
  } else {
    here.replica = nullptr;
    here.detached = nullptr;
  }
}

}  // namespace dist
