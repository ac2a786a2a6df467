// SPDX-License-Identifier: Apache-2.0
// Replicas on threads of the host: entering and leaving. The first to enter opens a run; the last to leave
// ends it.
#include <algorithm>
#include <cstdio>

#include "core/run/current.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {
namespace {

// Sees the end of a thread that is still inside a run. Made when a thread is to be watched for the first
// time.
struct ThreadEnd {
  bool watching = false;
  ~ThreadEnd() {
    Replica* const replica = current().replica;
    if (!watching || replica == nullptr) return;
    if (replica->attached()) {
      (void)replica->detach();
    } else {
      replica->pool().abandon(*replica);
    }
  }
};

thread_local ThreadEnd thread_end;

}  // namespace

void watch_thread_end() noexcept { thread_end.watching = true; }

// Waits until a run has ended.
Status ReplicaPool::end_of_run(uint32_t run) noexcept {
  const WaitPolicy& policy = group_.policy();
  const auto ended = [&] {
    return static_cast<int32_t>(ended_.value.load(std::memory_order_seq_cst) - run) >= 0 ||
           closing_.load(std::memory_order_seq_cst);
  };
  const int64_t start = host_.now_ns();
  while (!spin_until(policy, ended)) {
    int64_t left = -1;
    if (options_.timeout_ns > 0) {
      left = options_.timeout_ns - (host_.now_ns() - start);
      if (left <= 0) {
        char inside[256];
        list_inside(inside, sizeof inside);
        return fail(DIST_DEADLINE_EXCEEDED,
                    "the run has not ended within %.3f s: replicas %s have not left, or not come",
                    static_cast<double>(options_.timeout_ns) * 1e-9, inside);
      }
    }
    const uint32_t seen = ended_.value.load(std::memory_order_acquire);
    if (ended()) break;
    ended_.sleep(seen, host_.slice_ns(left), policy, ended);
  }
  if (static_cast<int32_t>(ended_.value.load(std::memory_order_acquire) - run) < 0) return shutting_down();
  return kOk;
}

Status ReplicaPool::enter(int id, Replica** out) noexcept {
  if (options_.threads != DIST_THREADS_HOST) {
    return failed_precondition(
        "this strategy has threads of its own: use dist_run(), or create it with "
        "DIST_THREADS_HOST");
  }
  if (id < 0 || id >= options_.num_replicas) {
    return invalid_argument("replica_id is %d; this strategy's replicas are 0 to %d", id,
                            options_.num_replicas - 1);
  }
  if (current().replica != nullptr) {
    return failed_precondition("this thread is replica %d already: dist_replica_leave() first",
                               current().replica->id());
  }
  Seat& seat = seats_[id];
  for (;;) {
    lock_.lock();
    if (closing_.load(std::memory_order_relaxed)) {
      lock_.unlock();
      return shutting_down();
    }
    if (!open_ && seat.occupied) {
      // The thread that was this replica in the run before has yet to read how that ended.
      lock_.unlock();
      yield_this_thread();
      continue;
    }
    if (!open_) {
      begin_groups(0);
      ++run_;
      open_ = true;
      left_ = 0;
    }
    const uint32_t run = run_;
    if (seat.entered != run) {
      seat.entered = run;
      seat.occupied = true;
      seat.thread_ended = false;
      lock_.unlock();
      break;
    }
    lock_.unlock();
    if (seat.finished.value.load(std::memory_order_acquire) != run) {
      return failed_precondition("replica %d is inside already, on another thread", id);
    }
    DIST_TRY(end_of_run(run));
  }
  watch_thread_end();
  current().replica = &seat.replica;
  seat.replica.begin();
  *out = &seat.replica;
  return kOk;
}

// Ends a replica's part of the run, and with the last one the run.
void ReplicaPool::depart(Seat& seat, Status status) noexcept {
  const uint32_t run = run_;  // does not change while a replica is inside
  // Whoever leaves with a status has just failed: the thread's latest error is its reason.
  conclude(seat, status, failures_on_this_thread() - 1);
  seat.replica.leave_thread();
  lock_.lock();
  const bool last = ++left_ == options_.num_replicas;
  if (last) {
    outcome_ = outcome();
    if (!outcome_.ok()) outcome_error_ = last_error();
    open_ = false;
  }
  lock_.unlock();
  if (last) ended_.publish(run, group_.policy());
}

Status ReplicaPool::leave(Replica& replica, Status status) noexcept {
  DIST_TRY(replica.check("dist_replica_leave"));
  if (options_.threads != DIST_THREADS_HOST || current().replica != &replica) {
    return failed_precondition(
        "dist_replica_leave(): %s %d has not come by dist_replica_enter(); its function ends by returning",
        member_word(options_.part_of), replica.id());
  }
  const uint32_t run = run_;
  depart(seat(replica), status);
  const Status ended = end_of_run(run);
  lock_.lock();
  const Status status_of_run = !ended.ok() ? ended : outcome_.ok() ? kOk : fail(outcome_error_);
  Counted* const kept = go(seat(replica));
  lock_.unlock();
  if (kept != nullptr) kept->release();
  return status_of_run;
}

void ReplicaPool::abandon(Replica& replica) noexcept {
  if (memory_.forked()) return;
  depart(seat(replica),
         failed_precondition("replica %d's thread ended inside its run, without dist_replica_leave()",
                             replica.id()));
  lock_.lock();
  Counted* const kept = go(seat(replica));
  lock_.unlock();
  if (kept != nullptr) kept->release();
}

}  // namespace dist
