// SPDX-License-Identifier: Apache-2.0
// ReplicaPool: shutting down while host functions may still be running, and ending the threads.
//
// A thread that is still inside at the deadline may return to anything that the strategy owns. It therefore
// holds a reference until then, and the last reference frees the strategy. It is released as follows:
//
//     a library thread       it is left alone: it releases the reference when it ends, and is not joined
//     the caller of a run    through the run lock: unlocking releases the strategy instead of opening the lock
//     a host thread          through its replica, when it leaves
#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/base/on_stack.hpp"
#include "core/base/os/park.hpp"
#include "core/base/os/thread.hpp"
#include "core/run/member_lists.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {

void ReplicaPool::refuse_runs(const char* call) noexcept {
  closing_.begin(call);
  nesting_.refuse_runs(call);
}

void ReplicaPool::close_queue(const char* call) noexcept {
  closing_.announce(call);
  lock_.close();
}

void ReplicaPool::shut_down(int64_t deadline_ns, std::span<char> inside, const char* call) noexcept {
  refuse_runs(call);
  char reason[64];
  (void)write_marked(reason, sizeof reason, "`%s()`", call);
  cancel(reason);
  close_queue(call);
  if (IdleHandler* const handler = idle_handler_.load(std::memory_order_acquire); handler != nullptr)
    handler->refuse_all();
  if (threads() == DIST_THREADS_HOST) {
    await_host_threads(deadline_ns, inside);
  } else {
    if (!await_callers(deadline_ns)) {
      keeper().retain();
      const bool updating = lock_in_turn_.load(std::memory_order_acquire);
      if (!lock_.bequeath(keeper())) {
        keeper().release();  // the lock has been opened just now
      } else if (updating) {
        std::snprintf(inside.data(), inside.size(), "an update from outside");
      }
    }
    char who[256];
    if (members_.list_inside(latest_.started(), who) > 0) append_to_list(inside, who);
  }
  list_handled(inside);
  nesting_.shut_down(deadline_ns, inside, call);
  end_threads();
}

// Appends the replicas that are inside a callback of the idle handler.
void ReplicaPool::list_handled(std::span<char> inside) const noexcept {
  const IdleHandler* const handler = idle_handler_.load(std::memory_order_acquire);
  auto* const members = DIST_ON_STACK(bool, num_replicas());
  for (int i = 0; i < num_replicas(); ++i) members[i] = is_inside(handler, i);
  char who[256];
  if (list_members(naming(), {members, static_cast<std::size_t>(num_replicas())}, who) > 0)
    append_to_list(inside, who);
}

// Returns true if the run lock was taken, permanently. Returns false if the deadline expired while functions
// of a run or an update are running; no new run can start then.
bool ReplicaPool::await_callers(int64_t deadline_ns) noexcept {
  while (lock_.lock_last(host(), deadline_ns) != RunLock::Wait::kLocked) {
    if (!members_.all_finished(latest_.started())) return false;
    // A host's update function, which no run waits for.
    if (lock_in_turn_.load(std::memory_order_acquire)) return false;
    // The caller of the run is about to enter or leave it, which involves no host function.
    yield_this_thread();
  }
  // Threads of a run that was abandoned at its deadline.
  for (int i = first_library_replica(); i < num_replicas(); ++i) (void)members_.await(i, deadline_ns);
  return true;
}

void ReplicaPool::await_host_threads(int64_t deadline_ns, std::span<char> inside) noexcept {
  // Threads that wait for the end of a run check again.
  changed_.advance();
  for (;;) {
    const uint32_t seen = gone_.value.load(std::memory_order_acquire);
    const auto changed = [&] { return gone_.value.load(std::memory_order_seq_cst) != seen; };
    const int64_t left = deadline_ns == 0 ? -1 : deadline_ns - host().now_ns();
    lock_.lock();
    {
      const RunLockHolder holder(lock_);
      if (idle_locked()) return;
      if (deadline_ns != 0 && left <= 0) return leave_host_threads(inside);
    }
    // Wait in short slices: a thread that was about to sleep until the end of a run may have missed the
    // wake-up.
    constexpr int64_t kSliceNs = 1'000'000;
    const int64_t slice = left < 0 ? kSliceNs : std::min(left, kSliceNs);
    if (!spin_until(group_.policy(), changed)) gone_.sleep(seen, slice, group_.policy(), changed);
    changed_.advance();
  }
}

// Must be called under the lock. The threads that are inside get references to the strategy.
void ReplicaPool::leave_host_threads(std::span<char> inside) noexcept {
  char who[256];
  auto* const occupants = DIST_ON_STACK(bool, num_replicas());
  for (int i = 0; i < num_replicas(); ++i) {
    HostThread& thread = host_threads_[static_cast<std::size_t>(i)];
    occupants[i] = thread.occupied;
    if (!occupants[i]) continue;
    keeper().retain();
    thread.keeps = &keeper();
  }
  (void)list_members(naming(), {occupants, static_cast<std::size_t>(num_replicas())}, who);
  append_to_list(inside, who);
}

// Must be called under the lock. A host thread leaves its replica. Returns the reference to release once the
// lock is open, or NULL.
Counted* ReplicaPool::go(int rank) noexcept {
  HostThread& thread = host_threads_[static_cast<std::size_t>(rank)];
  thread.occupied = false;
  changed_.advance();
  if (closing_.begun(std::memory_order_relaxed)) gone_.advance();
  return std::exchange(thread.keeps, nullptr);
}

}  // namespace dist
