// SPDX-License-Identifier: Apache-2.0
// ReplicaPool: shutting down while host functions may still be running, and ending the threads.
//
// A thread that is still inside at the deadline may return to anything that the strategy owns. It therefore
// holds a reference until then, and the last reference frees the strategy. It is released as follows:
//
//     a library thread       it is left alone: it releases the reference when it ends, and is not joined
//     the caller of a run    through the run lock: unlocking releases the strategy instead of opening the lock
//     a host thread          through its replica, when it leaves
#include <cstdio>

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
    host_threads_.await_end(deadline_ns, inside);
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

}  // namespace dist
