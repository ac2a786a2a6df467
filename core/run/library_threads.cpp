// SPDX-License-Identifier: Apache-2.0
#include "core/run/library_threads.hpp"

#include <cstdio>

#include "core/base/os/park.hpp"
#include "core/base/os/thread.hpp"

namespace dist {

LibraryThreads::LibraryThreads(const PoolFacts& facts, Group& group, LatestRun& latest, Members& members,
                               const Closing& closing, const std::atomic<IdleHandler*>& handler)
    : facts_(facts),
      group_(group),
      latest_(latest),
      members_(members),
      closing_(closing),
      handler_(handler),
      count_(facts.threads() == DIST_THREADS_HOST ? 0 : facts.num_replicas()),
      threads_(static_cast<std::size_t>(count_), &facts.memory()) {}

Status LibraryThreads::start() noexcept {
  for (int i = facts_.first_library_replica(); i < count_; ++i) DIST_TRY(start(i));
  return kOk;
}

Status LibraryThreads::start(int rank) noexcept {
  members_.renew(rank);
  LibraryThread::Settings settings{facts_.settings().threads.stack_bytes, facts_.cpus(), facts_.cpu_of(rank)};
  const MemberName called = facts_.naming().name(rank);
  if (facts_.naming().devices()) {
    std::snprintf(settings.name, sizeof settings.name, "dist-r%d-d%d", number(called.replica) & 0xFF,
                  called.logical_device & 0xFF);
  } else {
    std::snprintf(settings.name, sizeof settings.name, "dist-r%d", number(called.replica));
  }
  return thread(rank).start(facts_.memory(), facts_.keeper(), settings, [this, rank] { serve(rank); });
}

[[gnu::noinline, gnu::cold]] Status LibraryThreads::restart(int rank) noexcept {
  thread(rank).join();
  return start(rank);
}

// Waits for a run other than `seen`. Returns false if there is none and the thread must end.
bool LibraryThreads::await_run(int rank, uint32_t seen) {
  const WaitPolicy& policy = group_.policy();
  // seq_cst: checks of a sleeping thread. A run that was started is executed before the thread stops.
  const auto started = [&] { return latest_.word().value.load(std::memory_order_seq_cst) != seen; };
  const auto next = [&] {
    return started() || stopping_.load(std::memory_order_seq_cst) ||
           handler_.load(std::memory_order_seq_cst) != nullptr;
  };
  if (!spin_until(policy, next, facts_.caller_in_the_way())) {
    do {
      latest_.word().sleep(seen, -1, policy, next);
    } while (!next());
  }
  // acquire: makes the idle handler's state visible.
  IdleHandler* const handler = handler_.load(std::memory_order_acquire);
  if (handler != nullptr) {
    threads_[static_cast<std::size_t>(rank)].with_handler.store(true, std::memory_order_release);
    if (!handler->serve(rank, latest_.word().value, seen, stopping_)) return false;
  }
  return started();
}

void LibraryThreads::serve(int rank) {
  uint32_t seen = members_.finished(rank);
  while (await_run(rank, seen)) {
    seen = latest_.started();
    group_.keep_apart(rank, latest_.caller_cpu());
    members_.perform(rank);
    if (facts_.memory().forked()) return;  // a forked child has only this thread, so no run will ever start
  }
}

// Sleeping threads find the idle handler by themselves. Threads that are about to sleep may miss a wake-up.
void LibraryThreads::await_handler() noexcept {
  for (int i = facts_.first_library_replica(); i < count_; ++i) {
    while (!threads_[static_cast<std::size_t>(i)].with_handler.load(std::memory_order_acquire)) {
      unpark_all(latest_.word().value);
      yield_this_thread();
    }
  }
}

Status LibraryThreads::replace(LocalReplica replica) noexcept {
  const int rank = static_cast<int>(replica);
  // The thread that created the one to be replaced may not be done with that.
  const std::lock_guard lock(starting_);
  if (closing_.begun(std::memory_order_relaxed) || stopping_.load(std::memory_order_relaxed))
    return closing_.error();
  if (!thread(rank).leave_alone()) thread(rank).join();
  return start(rank);
}

void LibraryThreads::end() noexcept {
  {
    const std::lock_guard lock(starting_);
    stopping_.store(true, std::memory_order_seq_cst);
  }
  for (int i = facts_.first_library_replica(); i < count_; ++i) {
    if (thread(i).started()) end(i);
  }
}

void LibraryThreads::end(int rank) noexcept {
  LibraryThread& ending = thread(rank);
  IdleHandler* const handler = handler_.load(std::memory_order_acquire);
  const bool inside =
      members_.finished(rank) != latest_.started() || (handler != nullptr && handler->is_inside(rank));
  if (inside && !ending.has_ended() && ending.leave_alone()) return;
  // A thread that is about to sleep may miss a wake-up, because the word does not change.
  while (!ending.has_ended()) {
    unpark_all(latest_.word().value);
    if (handler != nullptr) handler->wake();
    yield_this_thread();
  }
  ending.join();
}

}  // namespace dist
