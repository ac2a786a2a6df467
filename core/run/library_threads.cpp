// SPDX-License-Identifier: Apache-2.0
// ReplicaPool: the threads that libdist creates: how they start and end, and what they do between runs.
#include <atomic>
#include <cstdio>

#include "core/base/os/park.hpp"
#include "core/base/os/thread.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {

Status ReplicaPool::start_thread_of(ReplicaState& state) noexcept {
  state.finished.value.store(run_, std::memory_order_relaxed);
  state.thread_ended = false;
  LibraryThread::Settings how{settings().threads.stack_bytes, cpus(), cpu_of(state.replica.rank())};
  const MemberName& called = state.replica.name();
  if (state.replica.is_device()) {
    std::snprintf(how.name, sizeof how.name, "dist-r%d-d%d", number(called.replica) & 0xFF,
                  called.logical_device & 0xFF);
  } else {
    std::snprintf(how.name, sizeof how.name, "dist-r%d", number(called.replica));
  }
  return state.thread.start(memory(), keeper(), how, [this, &state] { serve(state); });
}

[[gnu::noinline, gnu::cold]] Status ReplicaPool::restart(ReplicaState& state) noexcept {
  state.thread.join();
  return start_thread_of(state);
}

// Waits for a run other than `seen`. Returns false if there is none and the thread must end.
bool ReplicaPool::await_run(ReplicaState& state, uint32_t seen) {
  const WaitPolicy& policy = group_.policy();
  // seq_cst: checks of a sleeping thread. A run that was started is executed before the thread stops.
  const auto started = [&] { return started_.value.load(std::memory_order_seq_cst) != seen; };
  const auto next = [&] {
    return started() || stopping_.load(std::memory_order_seq_cst) ||
           idle_handler_.load(std::memory_order_seq_cst) != nullptr;
  };
  if (!spin_until(policy, next, caller_in_the_way())) {
    do {
      started_.sleep(seen, -1, policy, next);
    } while (!next());
  }
  // acquire: makes the idle handler's state visible.
  IdleHandler* const handler = idle_handler_.load(std::memory_order_acquire);
  if (handler != nullptr) {
    state.with_handler.store(true, std::memory_order_release);
    if (!handler->serve(state.replica.rank(), started_.value, seen, stopping_)) return false;
  }
  return started();
}

void ReplicaPool::serve(ReplicaState& state) {
  uint32_t seen = state.finished.value.load(std::memory_order_relaxed);
  while (await_run(state, seen)) {
    seen = started_.value.load(std::memory_order_acquire);
    group_.keep_apart(state.replica.rank(), caller_cpu_);
    perform(state);
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
    for (int i = first_library_replica(); threads() != DIST_THREADS_HOST && i < made_; ++i) {
      while (!states_[i].with_handler.load(std::memory_order_acquire)) {
        unpark_all(started_.value);
        yield_this_thread();
      }
    }
  }
  end_turn();
  return revived;
}

Status ReplicaPool::replace_thread(LocalReplica replica) noexcept {
  ReplicaState& state = states_[index(replica)];
  // The thread that created the one to be replaced may not be done with that.
  const std::lock_guard lock(starting_);
  if (closing_.begun(std::memory_order_relaxed) || stopping_.load(std::memory_order_relaxed))
    return shutting_down();
  if (!state.thread.leave_alone()) state.thread.join();
  return start_thread_of(state);
}

void ReplicaPool::end_threads() noexcept {
  {
    const std::lock_guard lock(starting_);
    stopping_.store(true, std::memory_order_seq_cst);
  }
  for (int i = 0; i < made_; ++i) {
    if (states_[i].thread.started()) end_thread(states_[i]);
  }
}

void ReplicaPool::end_thread(ReplicaState& state) noexcept {
  const uint32_t run = started_.value.load(std::memory_order_acquire);
  IdleHandler* const handler = idle_handler_.load(std::memory_order_acquire);
  const bool inside =
      state.finished.value.load(std::memory_order_acquire) != run || is_inside(handler, state.replica.rank());
  if (inside && !state.thread.has_ended() && state.thread.leave_alone()) return;
  // A thread that is about to sleep may miss a wake-up, because the word does not change.
  while (!state.thread.has_ended()) {
    unpark_all(started_.value);
    if (handler != nullptr) handler->wake();
    yield_this_thread();
  }
  state.thread.join();
}

}  // namespace dist
