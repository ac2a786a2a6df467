// SPDX-License-Identifier: Apache-2.0
// ReplicaPool: the threads that libdist creates: how they start and end, and what they do between runs.
#include <atomic>
#include <cstdio>

#include "core/base/os/park.hpp"
#include "core/base/os/thread.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {

Status ReplicaPool::start_thread_of(int rank) noexcept {
  members_.renew(rank);
  LibraryThread::Settings how{settings().threads.stack_bytes, cpus(), cpu_of(rank)};
  const MemberName called = naming().name(rank);
  if (naming().devices()) {
    std::snprintf(how.name, sizeof how.name, "dist-r%d-d%d", number(called.replica) & 0xFF,
                  called.logical_device & 0xFF);
  } else {
    std::snprintf(how.name, sizeof how.name, "dist-r%d", number(called.replica));
  }
  return thread_of(rank).start(memory(), keeper(), how, [this, rank] { serve(rank); });
}

[[gnu::noinline, gnu::cold]] Status ReplicaPool::restart(int rank) noexcept {
  thread_of(rank).join();
  return start_thread_of(rank);
}

// Waits for a run other than `seen`. Returns false if there is none and the thread must end.
bool ReplicaPool::await_run(int rank, uint32_t seen) {
  const WaitPolicy& policy = group_.policy();
  // seq_cst: checks of a sleeping thread. A run that was started is executed before the thread stops.
  const auto started = [&] { return latest_.word().value.load(std::memory_order_seq_cst) != seen; };
  const auto next = [&] {
    return started() || stopping_.load(std::memory_order_seq_cst) ||
           idle_handler_.load(std::memory_order_seq_cst) != nullptr;
  };
  if (!spin_until(policy, next, caller_in_the_way())) {
    do {
      latest_.word().sleep(seen, -1, policy, next);
    } while (!next());
  }
  // acquire: makes the idle handler's state visible.
  IdleHandler* const handler = idle_handler_.load(std::memory_order_acquire);
  if (handler != nullptr) {
    threads_[static_cast<std::size_t>(rank)].with_handler.store(true, std::memory_order_release);
    if (!handler->serve(rank, latest_.word().value, seen, stopping_)) return false;
  }
  return started();
}

void ReplicaPool::serve(int rank) {
  uint32_t seen = members_.finished(rank);
  while (await_run(rank, seen)) {
    seen = latest_.started();
    group_.keep_apart(rank, latest_.caller_cpu());
    members_.perform(rank);
    if (memory().forked()) return;  // a forked child has only this thread, so no run will ever start
  }
}

// Sleeping threads find the idle handler by themselves from now on. Threads that are about to sleep may miss a
// wake-up.
Status ReplicaPool::let_to(IdleHandler& handler, const char* call) noexcept {
  DIST_TRY(take_turn(call));
  Status revived = kOk;
  if (threads() != DIST_THREADS_HOST) revived = revive();
  if (revived.ok()) {
    // seq_cst: pairs with the checks of a sleeping thread. It is a release store as well.
    idle_handler_.store(&handler, std::memory_order_seq_cst);
    for (int i = first_library_replica(); threads() != DIST_THREADS_HOST && i < num_replicas(); ++i) {
      while (!threads_[static_cast<std::size_t>(i)].with_handler.load(std::memory_order_acquire)) {
        unpark_all(latest_.word().value);
        yield_this_thread();
      }
    }
  }
  end_turn();
  return revived;
}

Status ReplicaPool::replace_thread(LocalReplica replica) noexcept {
  const int rank = static_cast<int>(replica);
  // The thread that created the one to be replaced may not be done with that.
  const std::lock_guard lock(starting_);
  if (closing_.begun(std::memory_order_relaxed) || stopping_.load(std::memory_order_relaxed))
    return shutting_down();
  if (!thread_of(rank).leave_alone()) thread_of(rank).join();
  return start_thread_of(rank);
}

void ReplicaPool::end_threads() noexcept {
  {
    const std::lock_guard lock(starting_);
    stopping_.store(true, std::memory_order_seq_cst);
  }
  if (threads() == DIST_THREADS_HOST) return;
  for (int i = first_library_replica(); i < num_replicas(); ++i) {
    if (thread_of(i).started()) end_thread(i);
  }
}

void ReplicaPool::end_thread(int rank) noexcept {
  LibraryThread& thread = thread_of(rank);
  IdleHandler* const handler = idle_handler_.load(std::memory_order_acquire);
  const bool inside = members_.finished(rank) != latest_.started() || is_inside(handler, rank);
  if (inside && !thread.has_ended() && thread.leave_alone()) return;
  // A thread that is about to sleep may miss a wake-up, because the word does not change.
  while (!thread.has_ended()) {
    unpark_all(latest_.word().value);
    if (handler != nullptr) handler->wake();
    yield_this_thread();
  }
  thread.join();
}

}  // namespace dist
