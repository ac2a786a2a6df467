// SPDX-License-Identifier: Apache-2.0
#include "core/run/host_threads.hpp"

#include <algorithm>
#include <cstdio>

#include "core/base/on_stack.hpp"
#include "core/base/text.hpp"
#include "core/run/current.hpp"
#include "core/run/member_lists.hpp"
#include "core/run/worker_link.hpp"

namespace dist {

HostThreads::HostThreads(const Parts& parts, BudgetShare& budget, const std::atomic<IdleHandler*>& handler)
    : with_(parts),
      admission_(budget, handler),
      run_(parts.facts.memory(),
           parts.facts.threads() == DIST_THREADS_HOST ? parts.facts.num_replicas() : 0) {}

// Takes the lock once `holds()`, which is called under the lock, returns true. Returns false if the
// strategy's timeout expires first; the lock is taken all the same. While it waits, `kept` references the
// strategy's keeper, because the destruction of a strategy does not wait for threads that are not inside.
template <class Holds>
bool HostThreads::lock_when(Ref<Counted>& kept, Holds&& holds) noexcept {
  const WaitPolicy& policy = with_.groups.whole().policy();
  const Host& host = with_.facts.host();
  const int64_t timeout_ns = with_.facts.timeout_ns();
  Word& word = with_.changed;
  const int64_t start = host.now_ns();
  for (;;) {
    // The acquire keeps this load before the check, so a later change ends the wait.
    const uint32_t seen = word.value.load(std::memory_order_acquire);
    with_.lock.lock();
    if (holds()) return true;
    const auto changed = [&] { return word.value.load(std::memory_order_seq_cst) != seen; };
    const int64_t left = timeout_ns > 0 ? timeout_ns - (host.now_ns() - start) : -1;
    if (timeout_ns > 0 && left <= 0) return false;
    if (!kept) kept = Ref<Counted>::share(&with_.facts.keeper());
    Unseen unseen;
    unseen.take(unseen_);
    with_.lock.unlock();
    unseen.release();
    if (!spin_until(policy, changed)) word.sleep(seen, host.slice_ns(left), policy, changed);
  }
}

// Of the latest run. Also true if the member has not entered it yet but had finished an earlier one.
bool HostThreads::has_finished(int rank) const noexcept {
  return with_.members.finished(rank) == with_.latest.number();
}

// Must be called under the lock.
void HostThreads::list_missing_members(std::span<char> text) const noexcept {
  const int n = with_.facts.num_replicas();
  auto* const missing = DIST_ON_STACK(Missing, n);
  for (int i = 0; i < n; ++i) {
    missing[i] = run_.entered(i) != with_.latest.number() ? Missing::kToCome
                 : has_finished(i)                        ? Missing::kNothing
                                                          : Missing::kToLeave;
  }
  list_missing(with_.facts.naming(), {missing, static_cast<std::size_t>(n)}, text);
}

// Must be called under the lock. No thread waits for the end of this run any more. Late threads still enter
// it and get its report. It ends when a thread enters for the next run.
void HostThreads::give_up(const ErrorRecord& why) noexcept {
  admission_.give_threads_back();
  WorkerLink* const workers = with_.facts.workers();
  if (workers != nullptr) workers->end_run(Status(why.code), why);
  run_.give_up(why);
  with_.changed.advance();
}

Status HostThreads::is_late() noexcept {
  char missing[512];
  copy_text(missing, "a thread has not yet returned from `dist_replica_leave()`"_m);
  if (run_.is_open()) list_missing_members(missing);
  const Status late = fail(DIST_DEADLINE_EXCEEDED, "the run did not end within %s: %s",
                           DurationText(with_.facts.timeout_ns()).text, missing);
  if (run_.is_open() && !run_.given_up()) give_up(last_error());
  return late;
}

Status HostThreads::enter(LocalReplica replica, Replica** out) noexcept {
  const int rank = static_cast<int>(replica);
  Ref<Counted> kept;
  Unseen unseen;  // released after the lock is open
  const bool in_time = lock_when(kept, [&] { return may_enter(rank); });
  const RunLockHolder holder(with_.lock);
  unseen.take(unseen_);
  if (with_.closing.begun(std::memory_order_relaxed)) {
    stop_asking();
    return with_.closing.error();
  }
  if (run_.has_entered(rank, with_.latest.number()) && !has_finished(rank))
    return failed_precondition("replica %d has already entered, on another thread",
                               with_.facts.name_of(rank));
  if (!in_time) {
    stop_asking();
    return is_late();
  }
  if (!run_.is_open()) open();
  run_.come(rank, with_.latest.number());
  watch_thread_end();
  Replica& handle = with_.members.replica(rank);
  current().replica = &handle;
  handle.begin();
  *out = &handle;
  return kOk;
}

// Must be called under the lock. True if the thread need not wait: it may enter, or never will.
bool HostThreads::may_enter(int rank) noexcept {
  if (with_.closing.begun(std::memory_order_relaxed)) return true;
  if (run_.turn_taken()) return false;
  if (run_.is_open() && !run_.has_entered(rank, with_.latest.number())) return true;
  if (run_.is_open() && !has_finished(rank)) return true;
  // This thread returns from a run that was given up. That run ends when all threads have left.
  if (run_.is_open() && run_.given_up() && run_.idle()) close();
  // Otherwise, the previous thread of this replica may not have read the outcome of its run yet.
  return !run_.is_open() && !run_.occupied(rank) && !run_.turn_wanted() && admission_.ask();
}

// Must be called under the lock. The calling thread no longer wants to open a run; other threads that do must
// check again.
void HostThreads::stop_asking() noexcept {
  if (run_.is_open()) return;
  admission_.withdraw();
  with_.changed.advance();
}

void HostThreads::close() noexcept {
  run_.close();
  admission_.give_threads_back();
  if (with_.sight.has_pins()) [[unlikely]]
    with_.sight.let_go(unseen_);
  admission_.give_replicas_back();
}

void HostThreads::open() noexcept {
  with_.groups.begin({});
  if (with_.facts.workers() != nullptr) with_.facts.workers()->begin_run({});
  with_.latest.open(with_.groups.whole().run());
  run_.open();
}

// Ends a replica's part in the run, and the run itself after the last replica.
void HostThreads::depart(int rank, Status status) noexcept {
  // A thread that leaves with an error has just failed, so its latest error is the reason.
  with_.members.conclude(rank, status, failures_on_this_thread() - 1);
  with_.members.replica(rank).leave_thread();
  Unseen unseen;
  with_.lock.lock();
  if (run_.leave()) {
    close();
    if (!run_.given_up()) {
      const Status outcome = with_.members.outcome();
      const ErrorRecord why = outcome.ok() ? ErrorRecord{} : last_error();
      run_.end(outcome, why);
      if (with_.facts.workers() != nullptr) with_.facts.workers()->end_run(outcome, why);
    }
    with_.changed.advance();
  }
  unseen.take(unseen_);
  with_.lock.unlock();
}

Status HostThreads::leave(Replica& replica, Status status) noexcept {
  const uint32_t run = with_.latest.number();
  depart(replica.rank(), status);
  const auto ended = [&] { return !run_.is_open() || with_.latest.number() != run || run_.given_up(); };
  Ref<Counted> meanwhile;
  const bool in_time =
      lock_when(meanwhile, [&] { return ended() || with_.closing.begun(std::memory_order_relaxed); });
  const Status result = !in_time ? is_late() : !ended() ? with_.closing.error() : run_.outcome();
  Counted* const kept = go(replica.rank());
  with_.lock.unlock();
  if (kept != nullptr) kept->release();
  return result;
}

void HostThreads::abandon(Replica& replica) noexcept {
  depart(replica.rank(),
         failed_precondition(
             "replica %d's thread ended inside its run. Call `dist_replica_leave()` before the thread ends.",
             replica.name().number()));
  with_.lock.lock();
  Counted* const kept = go(replica.rank());
  with_.lock.unlock();
  if (kept != nullptr) kept->release();
}

// Must be called under the lock. A thread leaves its replica. Returns the reference to release once the lock is open, or
// NULL.
Counted* HostThreads::go(int rank) noexcept {
  Counted* const kept = run_.go(rank);
  with_.changed.advance();
  if (with_.closing.begun(std::memory_order_relaxed)) gone_.advance();
  return kept;
}

Status HostThreads::take_turn(const char* call) noexcept {
  with_.lock.lock();
  run_.want_turn();
  with_.lock.unlock();
  Ref<Counted> kept;
  const bool in_time =
      lock_when(kept, [&] { return run_.idle() || with_.closing.begun(std::memory_order_relaxed); });
  const RunLockHolder holder(with_.lock);
  run_.stop_wanting_turn();
  if (with_.closing.begun(std::memory_order_relaxed)) return with_.closing.error();
  if (!in_time) {
    with_.changed.advance();
    char missing[512];
    list_missing_members(missing);
    return fail(DIST_DEADLINE_EXCEEDED, "`%s()`: the run did not end within %s: %s", call,
                DurationText(with_.facts.timeout_ns()).text, missing);
  }
  with_.facts.keeper().retain();  // until end_turn(); a shutdown may not wait for the turn
  run_.take_turn();
  return kOk;
}

void HostThreads::end_turn() noexcept {
  Counted& keeper = with_.facts.keeper();
  with_.lock.lock();
  run_.end_turn();
  with_.changed.advance();
  with_.lock.unlock();
  keeper.release();
}

void HostThreads::cancel(const char* reason) noexcept {
  with_.lock.lock();
  const RunLockHolder holder(with_.lock);
  if (!run_.is_open() || run_.given_up() || run_.all_have_come()) return;
  ErrorRecord cancelled;
  cancelled.code = DIST_CANCELLED;
  std::snprintf(cancelled.message, sizeof cancelled.message, "the run was cancelled: %.900s",
                reason != nullptr ? reason : "dist_strategy_cancel()");
  give_up(cancelled);
}

void HostThreads::await_end(int64_t deadline_ns, std::span<char> inside) noexcept {
  const WaitPolicy& policy = with_.groups.whole().policy();
  // Threads that wait for the end of a run check again.
  with_.changed.advance();
  for (;;) {
    const uint32_t seen = gone_.value.load(std::memory_order_acquire);
    const auto changed = [&] { return gone_.value.load(std::memory_order_seq_cst) != seen; };
    const int64_t left = deadline_ns == 0 ? -1 : deadline_ns - with_.facts.host().now_ns();
    with_.lock.lock();
    {
      const RunLockHolder holder(with_.lock);
      if (run_.idle()) return;
      if (deadline_ns != 0 && left <= 0) return leave_alone(inside);
    }
    // Wait in short slices: a thread that was about to sleep until the end of a run may have missed the
    // wake-up.
    constexpr int64_t kSliceNs = 1'000'000;
    const int64_t slice = left < 0 ? kSliceNs : std::min(left, kSliceNs);
    if (!spin_until(policy, changed)) gone_.sleep(seen, slice, policy, changed);
    with_.changed.advance();
  }
}

// Must be called under the lock.
void HostThreads::leave_alone(std::span<char> inside) noexcept {
  const int n = with_.facts.num_replicas();
  auto* const occupants = DIST_ON_STACK(bool, n);
  for (int i = 0; i < n; ++i) {
    occupants[i] = run_.occupied(i);
    if (!occupants[i]) continue;
    with_.facts.keeper().retain();
    run_.keep(i, with_.facts.keeper());
  }
  char who[256];
  (void)list_members(with_.facts.naming(), {occupants, static_cast<std::size_t>(n)}, who);
  append_to_list(inside, who);
}

}  // namespace dist
