// SPDX-License-Identifier: Apache-2.0
#include "core/run/replica_pool.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <new>
#include <utility>

#include "core/base/host_call.hpp"
#include "core/base/os/cpus.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/text.hpp"
#include "core/run/current.hpp"
#include "core/run/device_team.hpp"
#include "core/run/inner_pool.hpp"

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

ReplicaPool::ReplicaPool(Memory& memory, Group& group, WaitGraph& graph, const Host& host,
                         const PoolSettings& settings)
    : PoolFacts(memory, host, settings),
      group_(group),
      nesting_(memory, settings.nesting.lent),
      sight_(memory, settings.nesting.outer != nullptr, latest_.number(), nesting_),
      groups_(*this, group, graph, nesting_, sight_),
      members_(*this, latest_, groups_, *this),
      threads_(*this, group, latest_, members_, closing_, idle_handler_),
      budget_(*this, group, closing_, changed_),
      host_threads_({*this, lock_, latest_, members_, groups_, sight_, closing_, changed_}, budget_,
                    idle_handler_),
      outer_(settings.nesting.outer),
      graph_(graph),
      teams_(&memory) {}

ReplicaPool::~ReplicaPool() {
  budget_.give_back();
  InnerPool::destroy(inner_.load(std::memory_order_acquire));
  for (DeviceTeam* const team : teams_) DeviceTeam::destroy(team);
  end_threads();
}

Status ReplicaPool::start() noexcept {
  if (settings().nesting.devices != nullptr) DIST_TRY(make_teams());
  for (int i = 0; i < num_replicas(); ++i) groups_.keep_apart(i);
  return threads_.start();
}

Status ReplicaPool::make_teams() noexcept {
  try {
    teams_.reserve(static_cast<std::size_t>(num_replicas()));
    for (int i = 0; i < num_replicas(); ++i) {
      DeviceTeam* team = nullptr;
      DIST_TRY(DeviceTeam::create(memory(), *this, *settings().nesting.devices, LocalReplica{i}, &team));
      teams_.push_back(team);
      nesting_.add(*team);
    }
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
  return kOk;
}

// Lets a cancel object end one run, and nothing else.
class ReplicaPool::CancelLink final : public Cancel::Link {
 public:
  explicit CancelLink(ReplicaPool& pool) noexcept : pool_(pool) {}
  void cancelled(const char* reason) noexcept override { pool_.cancel(reason); }

 private:
  ReplicaPool& pool_;
};

// The replicas that a run or turn has borrowed from the idle handler.
class ReplicaPool::AllReplicas {
 public:
  explicit AllReplicas(ReplicaPool& pool) noexcept : pool_(pool) {}
  // `mine`: the caller has them already, because it is in a turn.
  Status take(const IdleHandler::Asking& asking, bool mine) noexcept {
    // acquire: makes the idle handler's state visible.
    IdleHandler* const handler = pool_.idle_handler_.load(std::memory_order_acquire);
    if (handler == nullptr || mine) [[likely]]
      return kOk;
    DIST_TRY(handler->take_all(asking));
    idle_handler_ = handler;
    return kOk;
  }
  // Another thread will return them.
  IdleHandler* hand_over() noexcept { return std::exchange(idle_handler_, nullptr); }
  void give_back() noexcept {
    if (IdleHandler* const handler = hand_over(); handler != nullptr && !pool_.memory().forked())
      handler->give_back();
  }
  ~AllReplicas() { give_back(); }
  AllReplicas(const AllReplicas&) = delete;
  AllReplicas& operator=(const AllReplicas&) = delete;

 private:
  ReplicaPool& pool_;
  IdleHandler* idle_handler_ = nullptr;
};

// Runs replica 0's function on the caller's thread. If that thread ends inside it, its stack is destroyed,
// including what the run borrowed from it. So the peers are told, and must have returned before the run lock
// opens.
void ReplicaPool::perform_on_caller() {
  struct Returning {
    explicit Returning(ReplicaPool& pool) noexcept : pool_(pool) {}
    ~Returning() {
      if (returned_) return;
      for (int i = 1; i < pool_.num_replicas(); ++i) (void)pool_.members_.await(i, 0);
      (void)pool_.over(failed_precondition("the caller's thread ended inside its run"));
    }
    ReplicaPool& pool_;
    bool returned_ = false;
  };
  Returning returning(*this);
  members_.perform(0);
  returning.returned_ = true;
}

// Waits for the runs that were requested earlier.
Status ReplicaPool::await_turn(const RunLimits& limits, int64_t deadline_ns) noexcept {
  switch (lock_.lock(host(), deadline_ns, limits.cancel)) {
    case RunLock::Wait::kLocked: break;
    case RunLock::Wait::kCancelled: return cancelled_early(naming(), limits.cancel->reason());
    case RunLock::Wait::kClosed: return shutting_down();
    case RunLock::Wait::kDeadline:
      return fail(DIST_DEADLINE_EXCEEDED, "an earlier run of this strategy did not end within %s",
                  DurationText(limits.timeout_ns).text);
  }
  return kOk;
}

// Owns the run lock during a run. Leaves it unchanged in a forked child and for a run in a turn that its
// caller has taken. Releases the run's pinned versions: it collects them under the lock (unless the run was
// abandoned at its deadline), and calls the release callbacks after the lock is open.
class ReplicaPool::Holding {
 public:
  Holding(ReplicaPool& pool, AllReplicas& all, bool mine) noexcept : pool_(pool), all_(all), mine_(mine) {}
  ~Holding() {
    if (pool_.sight_.has_pins()) [[unlikely]] {
      end_seeing(pool_, mine_, all_.hand_over());
    } else if (mine_ && !pool_.memory().forked()) {
      pool_.lock_.unlock();
    }
  }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

 private:
  [[gnu::noinline, gnu::cold]] static void end_seeing(ReplicaPool& pool, bool mine,
                                                      IdleHandler* handler) noexcept {
    if (pool.memory().forked()) return;
    Unseen unseen;
    if (!pool.overdue_) pool.sight_.let_go(unseen);
    if (mine) pool.lock_.unlock();
    if (handler != nullptr) handler->give_back();
  }

  ReplicaPool& pool_;
  AllReplicas& all_;
  const bool mine_;
};

// Tells the other workers that the run has ended here, and how.
inline Status ReplicaPool::over(Status outcome) noexcept {
  if (workers() != nullptr) [[unlikely]]
    tell_workers(outcome);
  return outcome;
}

// Counts a run among the workers even though it does not start here. Otherwise their run numbers would
// diverge.
[[gnu::noinline, gnu::cold]] Status ReplicaPool::refused(Status why) noexcept {
  if (workers() != nullptr) {
    workers()->begin_run({});
    tell_workers(why);
  }
  return why;
}

// The same for a run that had no turn: the next run reports it.
[[gnu::noinline, gnu::cold]] Status ReplicaPool::owed(Status why) noexcept {
  if (workers() != nullptr) workers()->owe(last_error());
  return why;
}

[[gnu::noinline, gnu::cold]] void ReplicaPool::tell_workers(Status outcome) noexcept {
  workers()->end_run(outcome, outcome.ok() ? ErrorRecord{} : last_error());
}

// A nested run ends at the deadline of the outer run at the latest.
RunDeadline ReplicaPool::deadline_of(const RunLimits& limits) const noexcept {
  RunDeadline own;
  if (limits.deadline_ns != 0) {
    own = {limits.deadline_ns, limits.timeout_ns};
  } else if (limits.timeout_ns > 0) {
    own = {deadline_after(host().now_ns(), limits.timeout_ns), limits.timeout_ns};
  }
  if (outer_ == nullptr) return own;
  const RunDeadline& outer = outer_->group.deadline();
  return own.at_ns == 0 || (outer.at_ns != 0 && outer.at_ns < own.at_ns) ? outer : own;
}

// `kCounted`: there is a budget. A separate instantiation, so that without a budget a run pays only for one
// check.
template <bool kCounted>
[[gnu::noinline]] Status ReplicaPool::run_as(const Body& body, const RunLimits& limits) {
  DIST_TRY(check_may_wait(limits.call));
  if (threads() == DIST_THREADS_HOST) {
    return failed_precondition(
        "this strategy runs replicas on host threads (`DIST_THREADS_HOST`). Call `dist_replica_enter()` and "
        "`dist_replica_leave()` on each of them instead of `dist_run()`.");
  }
  if (limits.cancel != nullptr && limits.cancel->signalled() && workers() == nullptr)
    return cancelled_early(naming(), limits.cancel->reason());
  // Nothing may start in an outer run that has ended.
  if (outer_ != nullptr) DIST_TRY(outer_->group.check_run());
  const RunDeadline deadline = deadline_of(limits);
  const BudgetStay stay(kCounted ? insider() : nullptr);
  const bool in_turn = current().turn == this;
  AllReplicas all(*this);
  DIST_TRY(all.take({limits.call, limits.timeout_ns, deadline.at_ns, limits.cancel}, in_turn));
  if (!in_turn && !lock_.try_lock()) {
    // The destruction of the strategy does not wait for threads that leave the queue, so this one holds a
    // reference.
    const Ref<Counted> kept = Ref<Counted>::share(&keeper());
    if (const Status waited = await_turn(limits, deadline.at_ns); !waited.ok()) {
      all.give_back();
      return owed(waited);
    }
  }
  const Holding holding(*this, all, !in_turn);
  if (const Status all_out = check_all_out(); !all_out.ok()) return refused(all_out);
  if (const Status revived = threads_.revive(); !revived.ok()) return refused(revived);

  outer_ == nullptr ? begin_groups(deadline) : begin_groups_inside(deadline);
  // seq_cst: either this load sees closing_, or shut_down() sees the clean groups and ends them.
  if (closing_.begun(std::memory_order_seq_cst)) return shutting_down();
  CancelLink link(*this);
  const CancelScope scope(limits.cancel, link);
  if (scope.late()) return refused(cancelled_early(naming(), limits.cancel->reason()));
  struct GivingBack {
    ~GivingBack() {
      if (kCounted && !pool.memory().forked()) pool.budget_.give_back();
    }
    ReplicaPool& pool;
  } const giving_back{*this};
  if (kCounted && !limits.uncounted) {
    if (const Status taken = budget_.take(limits, deadline); !taken.ok()) return refused(taken);
  }
  if (workers() != nullptr) [[unlikely]]
    workers()->begin_run(deadline);
  if (body.about_to_start != nullptr) body.about_to_start(body.context);
  const int cpu = threads() == DIST_THREADS_CALLER ? current_cpu() : -1;
  latest_.start(body, cpu, group_.run(), group_.policy());
  if (IdleHandler* const handler = idle_handler_.load(std::memory_order_relaxed); handler != nullptr)
      [[unlikely]]
    handler->wake();
  if (threads() == DIST_THREADS_CALLER) {
    perform_on_caller();
    if (memory().forked()) return in_forked_child();
  }
  for (int i = first_library_replica(); i < num_replicas(); ++i) {
    if (members_.finished(i) == latest_.number()) continue;
    if (!members_.await(i, deadline.at_ns)) return over(overdue());
  }
  // The idle handler uses the replicas from now on without another call to revive().
  if (idle_handler_.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    (void)threads_.revive();
  return over(members_.outcome());
}

bool ReplicaPool::is_inside_function() noexcept {
  const Current& here = current();
  return here.replica != nullptr || here.detached != nullptr || here.turn != nullptr;
}

Status ReplicaPool::run(const Body& body, const RunLimits& limits) {
  return settings().party == nullptr ? run_as<false>(body, limits) : run_as<true>(body, limits);
}

Status ReplicaPool::let_to(IdleHandler& handler, const char* call) noexcept {
  DIST_TRY(take_turn(call));
  const Status revived = threads_.revive();
  if (revived.ok()) {
    // seq_cst: pairs with the checks of a sleeping thread. It is a release store as well.
    idle_handler_.store(&handler, std::memory_order_seq_cst);
    threads_.await_handler();
  }
  end_turn();
  return revived;
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
  const BudgetStay stay(insider());
  return host_threads_.enter(local, out);
}

Status ReplicaPool::leave(Replica& replica, Status status) noexcept {
  DIST_TRY(replica.check("dist_replica_leave"));
  if (threads() != DIST_THREADS_HOST || current().replica != &replica) {
    return failed_precondition(
        "`dist_replica_leave()`: %s %d did not enter with `dist_replica_enter()`. Return from its function "
        "instead.",
        replica.name().word(), replica.name().number());
  }
  return host_threads_.leave(replica, status);
}

void ReplicaPool::abandon(Replica& replica) noexcept {
  if (!memory().forked()) host_threads_.abandon(replica);
}

}  // namespace dist
