// SPDX-License-Identifier: Apache-2.0
// ReplicaPool: turns between runs, in which cross-replica code reads or writes variables. host_threads.hpp has the
// turns of strategies with host threads.
#include <limits>
#include <utility>

#include "core/base/text.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {

Status ReplicaPool::take_turn(const char* call) noexcept {
  const int64_t limit_ns = timeout_ns();
  const int64_t deadline_ns = limit_ns > 0 ? deadline_after(host().now_ns(), limit_ns) : 0;
  const BudgetStay stay(insider());
  // acquire: makes the idle handler's state visible.
  IdleHandler* const handler = idle_handler_.load(std::memory_order_acquire);
  if (handler != nullptr) DIST_TRY(handler->take_all({call, limit_ns, deadline_ns, nullptr}));
  const Status taken = threads() == DIST_THREADS_HOST ? host_threads_.take_turn(call)
                                                      : take_turn_of_library(call, deadline_ns);
  if (taken.ok()) {
    lender_ = handler;
  } else if (handler != nullptr) {
    handler->give_back();
  }
  return taken;
}

Status ReplicaPool::take_turn_of_library(const char* call, int64_t deadline_ns) noexcept {
  if (!lock_.try_lock()) {
    // The destruction of the strategy does not wait for threads that leave the queue, so this one holds a
    // reference.
    const Ref<Counted> kept = Ref<Counted>::share(&keeper());
    const RunLock::Wait wait = lock_.lock(host(), deadline_ns, nullptr);
    if (wait == RunLock::Wait::kClosed) return shutting_down();
    if (wait != RunLock::Wait::kLocked) {
      return fail(DIST_DEADLINE_EXCEEDED,
                  "`%s()`: a run of this strategy did not end within %s. Read and write variables between "
                  "runs, or in a merge function.",
                  call, DurationText(timeout_ns()).text);
    }
  }
  const Status all_out = check_all_out();
  if (!all_out.ok()) {
    lock_.unlock();
    return all_out;
  }
  lock_in_turn_.store(true, std::memory_order_release);
  return kOk;
}

void ReplicaPool::end_turn() noexcept {
  if (memory().forked()) return;
  struct Lent {
    ~Lent() {
      if (lender != nullptr) lender->give_back();
    }
    IdleHandler* lender;
  } const lent{std::exchange(lender_, nullptr)};
  if (threads() != DIST_THREADS_HOST) {
    lock_in_turn_.store(false, std::memory_order_release);
    return lock_.unlock();
  }
  host_threads_.end_turn();
}

}  // namespace dist
