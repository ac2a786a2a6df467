// SPDX-License-Identifier: Apache-2.0
// ReplicaPool: replicas on threads of the host. The first thread to enter opens a run, and the last one to
// leave ends it.
//
// A run is given up if it is not complete in time, or if it is cancelled before all replicas have entered.
// Threads that have left then return, threads that enter late get the run's report, and the next run begins
// when a thread that was in this one enters again.
#include <cstdio>
#include <span>
#include <utility>

#include "core/base/on_stack.hpp"
#include "core/base/os/thread.hpp"
#include "core/run/current.hpp"
#include "core/run/member_lists.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {
namespace {

// Handles the end of a thread that may still be inside a run.
void thread_ends() noexcept {
  Replica* const replica = current().replica;
  if (replica == nullptr) return;
  if (replica->attached()) {
    (void)replica->detach();
  } else {
    replica->pool().abandon(*replica);
  }
}

}  // namespace

void watch_thread_end() noexcept { (void)call_at_thread_end<thread_ends>(); }

// Takes the lock once `holds()`, which is called under the lock, returns true. Returns false if the
// strategy's timeout expires first; the lock is taken all the same. While it waits, `kept` references the
// strategy's keeper, because the destruction of a strategy does not wait for threads that are not inside.
template <class Holds>
bool ReplicaPool::lock_when(Ref<Counted>& kept, Holds&& holds) noexcept {
  const WaitPolicy& policy = group_.policy();
  const int64_t start = host().now_ns();
  for (;;) {
    // The acquire keeps this load before the check, so a later change ends the wait.
    const uint32_t seen = changed_.value.load(std::memory_order_acquire);
    lock_.lock();
    if (holds()) return true;
    const auto changed = [&] { return changed_.value.load(std::memory_order_seq_cst) != seen; };
    const int64_t left = timeout_ns() > 0 ? timeout_ns() - (host().now_ns() - start) : -1;
    if (timeout_ns() > 0 && left <= 0) return false;
    if (!kept) kept = Ref<Counted>::share(&keeper());
    Unseen unseen;
    unseen.take(unseen_);
    lock_.unlock();
    unseen.release();
    if (!spin_until(policy, changed)) changed_.sleep(seen, host().slice_ns(left), policy, changed);
  }
}

// Must be called under the lock.
void ReplicaPool::list_missing_members(std::span<char> text) const noexcept {
  auto* const missing = DIST_ON_STACK(Missing, num_replicas());
  for (int i = 0; i < num_replicas(); ++i) {
    const bool left = members_.finished(i) == latest_.number();
    missing[i] = host_threads_[static_cast<std::size_t>(i)].entered != latest_.number() ? Missing::kToCome
                 : left                                                                 ? Missing::kNothing
                                                                                        : Missing::kToLeave;
  }
  list_missing(naming(), {missing, static_cast<std::size_t>(num_replicas())}, text);
}

// Must be called under the lock. No thread waits for the end of this run any more. Late threads still enter
// it and get its report. It ends when a thread enters for the next run.
void ReplicaPool::give_up_run(const ErrorRecord& why) noexcept {
  given_up_ = true;
  budget_.give_back();
  if (workers() != nullptr) workers()->end_run(Status(why.code), why);
  outcome_ = Status(why.code);
  outcome_error_ = why;
  changed_.advance();
}

Status ReplicaPool::run_is_late() noexcept {
  char missing[512];
  copy_text(missing, "a thread has not yet returned from `dist_replica_leave()`"_m);
  if (open_) list_missing_members(missing);
  const Status late = fail(DIST_DEADLINE_EXCEEDED, "the run did not end within %s: %s",
                           DurationText(timeout_ns()).text, missing);
  if (open_ && !given_up_) give_up_run(last_error());
  return late;
}

Status ReplicaPool::enter(GlobalReplica replica, Replica** out) noexcept {
  if (threads() != DIST_THREADS_HOST) {
    return failed_precondition(
        "this strategy runs replicas on its own threads. Use `dist_run()`, or create the strategy with "
        "`DIST_THREADS_HOST`.");
  }
  const LocalReplica local = replicas().local_of(replica);
  if (local == kNoLocalReplica) {
    return invalid_argument("`replica_id` is %d, but this strategy's replicas are %d to %d", number(replica),
                            number(replicas().first()), number(replicas().last()));
  }
  if (current().replica != nullptr) {
    return failed_precondition("this `thread` is already replica %d. Call `dist_replica_leave()` first.",
                               current().replica->name().number());
  }
  const int rank = static_cast<int>(local);
  HostThread& thread = host_threads_[index(local)];
  Ref<Counted> kept;
  const BudgetStay stay(insider());
  Unseen unseen;  // released after the lock is open
  const bool in_time = lock_when(kept, [&] { return may_enter(rank); });
  const RunLockHolder holder(lock_);
  unseen.take(unseen_);
  if (closing_.begun(std::memory_order_relaxed)) {
    stop_asking();
    return shutting_down();
  }
  if (open_ && thread.entered == latest_.number() && members_.finished(rank) != latest_.number())
    return failed_precondition("replica %d has already entered, on another thread", name_of(rank));
  if (!in_time) {
    stop_asking();
    return run_is_late();
  }
  if (!open_) open_run();
  ++come_;
  thread.entered = latest_.number();
  thread.occupied = true;
  watch_thread_end();
  Replica& handle = members_.replica(rank);
  current().replica = &handle;
  handle.begin();
  *out = &handle;
  return kOk;
}

// Must be called under the lock. True if the thread need not wait: it may enter, or never will.
bool ReplicaPool::may_enter(int rank) noexcept {
  if (closing_.begun(std::memory_order_relaxed)) return true;
  if (turn_taken_) return false;
  const HostThread& thread = host_threads_[static_cast<std::size_t>(rank)];
  if (open_ && thread.entered != latest_.number()) return true;
  if (open_ && members_.finished(rank) != latest_.number()) return true;
  // This thread returns from a run that was given up. That run ends when all threads have left.
  if (open_ && given_up_ && idle_locked()) close_run();
  // Otherwise, the previous thread of this replica may not have read the outcome of its run yet.
  return !open_ && !thread.occupied && turns_wanted_ == 0 && may_open();
}

// Whether the replicas are free for a run. If not, requests them.
bool ReplicaPool::may_open() noexcept {
  // acquire: makes the idle handler's state visible.
  IdleHandler* const handler = idle_handler_.load(std::memory_order_acquire);
  if (handler != nullptr && run_lender_ == nullptr) {
    if (!handler->ask_to_enter()) return false;
    run_lender_ = handler;
  }
  return budget_.ask();
}

// Must be called under the lock. The calling thread no longer wants to open a run; other threads that do must
// check again.
void ReplicaPool::stop_asking() noexcept {
  if (open_) return;
  budget_.give_back();
  if (IdleHandler* const lender = std::exchange(run_lender_, nullptr); lender != nullptr) {
    lender->give_back();
  } else if (IdleHandler* const handler = idle_handler_.load(std::memory_order_acquire); handler != nullptr) {
    handler->no_longer_asks();
  }
  changed_.advance();
}

void ReplicaPool::close_run() noexcept {
  open_ = false;
  budget_.give_back();
  if (sight_.has_pins()) [[unlikely]]
    sight_.let_go(unseen_);
  if (IdleHandler* const lender = std::exchange(run_lender_, nullptr); lender != nullptr) lender->give_back();
}

void ReplicaPool::open_run() noexcept {
  begin_groups({});
  if (workers() != nullptr) workers()->begin_run({});
  latest_.open(group_.run());
  open_ = true;
  given_up_ = false;
  come_ = 0;
  left_ = 0;
}

// Ends a replica's part in the run, and the run itself after the last replica.
void ReplicaPool::depart(int rank, Status status) noexcept {
  // A thread that leaves with an error has just failed, so its latest error is the reason.
  members_.conclude(rank, status, failures_on_this_thread() - 1);
  members_.replica(rank).leave_thread();
  Unseen unseen;
  lock_.lock();
  if (++left_ == num_replicas()) {
    close_run();
    if (!given_up_) {
      outcome_ = members_.outcome();
      if (!outcome_.ok()) outcome_error_ = last_error();
      if (workers() != nullptr) workers()->end_run(outcome_, outcome_error_);
    }
    changed_.advance();
  }
  unseen.take(unseen_);
  lock_.unlock();
}

Status ReplicaPool::leave(Replica& replica, Status status) noexcept {
  DIST_TRY(replica.check("dist_replica_leave"));
  if (threads() != DIST_THREADS_HOST || current().replica != &replica) {
    return failed_precondition(
        "`dist_replica_leave()`: %s %d did not enter with `dist_replica_enter()`. Return from its function "
        "instead.",
        replica.name().word(), replica.name().number());
  }
  const uint32_t run = latest_.number();
  depart(replica.rank(), status);
  const auto ended = [&] { return !open_ || latest_.number() != run || given_up_; };
  Ref<Counted> meanwhile;
  const bool in_time =
      lock_when(meanwhile, [&] { return ended() || closing_.begun(std::memory_order_relaxed); });
  const Status result = !in_time        ? run_is_late()
                        : !ended()      ? shutting_down()
                        : outcome_.ok() ? kOk
                                        : fail(outcome_error_);
  Counted* const kept = go(replica.rank());
  lock_.unlock();
  if (kept != nullptr) kept->release();
  return result;
}

Status ReplicaPool::take_turn_of_host(const char* call) noexcept {
  lock_.lock();
  ++turns_wanted_;
  lock_.unlock();
  Ref<Counted> kept;
  const bool in_time =
      lock_when(kept, [&] { return idle_locked() || closing_.begun(std::memory_order_relaxed); });
  const RunLockHolder holder(lock_);
  --turns_wanted_;
  if (closing_.begun(std::memory_order_relaxed)) return shutting_down();
  if (!in_time) {
    changed_.advance();
    char missing[512];
    list_missing_members(missing);
    return fail(DIST_DEADLINE_EXCEEDED, "`%s()`: the run did not end within %s: %s", call,
                DurationText(timeout_ns()).text, missing);
  }
  keeper().retain();  // until end_turn(); a shutdown may not wait for the turn
  turn_taken_ = true;
  return kOk;
}

void ReplicaPool::abandon(Replica& replica) noexcept {
  if (memory().forked()) return;
  depart(replica.rank(),
         failed_precondition(
             "replica %d's thread ended inside its run. Call `dist_replica_leave()` before the thread ends.",
             replica.name().number()));
  lock_.lock();
  Counted* const kept = go(replica.rank());
  lock_.unlock();
  if (kept != nullptr) kept->release();
}

// The group's cancellation reaches the threads that are inside, and the run ends when they have left. If a
// replica has not entered and may never do so, the run is given up instead.
void ReplicaPool::cancel_host_run(const char* reason) noexcept {
  lock_.lock();
  const RunLockHolder holder(lock_);
  if (!open_ || given_up_ || come_ == num_replicas()) return;
  ErrorRecord cancelled;
  cancelled.code = DIST_CANCELLED;
  std::snprintf(cancelled.message, sizeof cancelled.message, "the run was cancelled: %.900s",
                reason != nullptr ? reason : "dist_strategy_cancel()");
  give_up_run(cancelled);
}

}  // namespace dist
