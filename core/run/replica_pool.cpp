// SPDX-License-Identifier: Apache-2.0
#include "core/run/replica_pool.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <new>
#include <utility>

#include "core/base/host_call.hpp"
#include "core/base/os/cpus.hpp"
#include "core/base/text.hpp"
#include "core/run/current.hpp"
#include "core/run/device_team.hpp"
#include "core/run/inner_pool.hpp"

namespace dist {
// A replica's part in a run: from the start of its function until the function has returned or its thread
// ends.
class ReplicaPool::Turn {
 public:
  Turn(ReplicaPool& pool, ReplicaState& state) noexcept
      : pool_(pool), state_(state), failures_(failures_on_this_thread()), within_(&state.replica, false) {
    state.replica.begin();
  }
  ~Turn() {
    // If it was not concluded, the thread is being ended inside its function.
    if (!concluded_) {
      state_.thread_ended = true;
      conclude(failed_precondition("%s %d's thread ended inside its run (pthread_exit)",
                                   state_.replica.name().word(), state_.replica.name().number()));
    }
  }
  void conclude(Status status) noexcept {
    concluded_ = true;
    pool_.conclude(state_, status, failures_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  ReplicaPool& pool_;
  ReplicaState& state_;
  const uint64_t failures_;
  const Within within_;
  bool concluded_ = false;
};

ReplicaPool::ReplicaPool(Memory& memory, Group& group, WaitGraph& graph, const Host& host,
                         const PoolSettings& settings)
    : PoolFacts(memory, host, settings),
      group_(group),
      nesting_(memory, settings.nesting.lent),
      sight_(memory, settings.nesting.outer != nullptr, run_, nesting_),
      groups_(*this, group, graph, nesting_, sight_),
      outer_(settings.nesting.outer),
      graph_(graph),
      here_(settings.num_replicas),
      teams_(&memory),
      budget_(*this, group, closing_, changed_) {
  const auto n = static_cast<std::size_t>(settings.num_replicas);
  states_ = static_cast<ReplicaState*>(memory.allocate(n * sizeof(ReplicaState), alignof(ReplicaState)));
  for (; made_ < settings.num_replicas; ++made_) {
    new (&states_[made_])
        ReplicaState(memory, *this, group, recorder_of(made_), place_of(made_), loops_of(made_),
                     settings.collectives.channels.cache_bytes, here_.at(made_),
                     settings.workers == nullptr ? nullptr : &settings.workers->communicator());
  }
}

ReplicaPool::~ReplicaPool() {
  budget_.give_back();
  InnerPool::destroy(inner_.load(std::memory_order_acquire));
  for (DeviceTeam* const team : teams_) DeviceTeam::destroy(team);
  end_threads();
  for (int i = 0; i < made_; ++i) states_[i].~ReplicaState();
  memory().deallocate(states_, static_cast<std::size_t>(num_replicas()) * sizeof(ReplicaState),
                      alignof(ReplicaState));
}

Status ReplicaPool::start() noexcept {
  if (settings().nesting.devices != nullptr) DIST_TRY(make_teams());
  for (int i = 0; i < num_replicas(); ++i) groups_.keep_apart(i);
  if (threads() == DIST_THREADS_HOST) return kOk;
  for (int i = first_library_replica(); i < num_replicas(); ++i) DIST_TRY(start_thread_of(states_[i]));
  return kOk;
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

// A forced unwind has no exception object, which the sanitizer mistakes for a null reference.
__attribute__((no_sanitize("null"))) void ReplicaPool::perform(ReplicaState& state) {
  Turn turn(*this, state);
  char who[64];
  dist_status status;
  try {
    status = body_.call(state.replica, body_);
  } catch (abi::__forced_unwind&) {
    throw;  // the thread is being ended; Turn's destructor reports it
  } catch (...) {
    std::snprintf(who, sizeof who, "%s %d's function", state.replica.name().word(),
                  state.replica.name().number());
    status = status_of_exception(who).code();
  }
  turn.conclude(Status(status));
}

namespace {

// Why the device runs of the other replicas end: they are useless because the run has failed.
ErrorRecord report_for_devices(const Replica& failed, Status result, const ErrorRecord& error) noexcept {
  if (result.code() == DIST_ABORTED) return error;
  ErrorRecord why;
  why.code = DIST_ABORTED;
  why.culprit = failed.name();
  std::snprintf(why.message, sizeof why.message, "replica %d failed with %s: %.900s", why.culprit.number(),
                status_name(result.code()), error.message);
  hint_to_mend(why, why.culprit);
  return why;
}

}  // namespace

// The function has returned: stores its result, leaves the group, and notifies the waiting threads.
void ReplicaPool::conclude(ReplicaState& state, Status status, uint64_t failures_before) noexcept {
  // A forked child has no threads to notify, and its locks may never open.
  if (memory().forked()) return;
  state.replica.come_back();
  state.replica.end();
  if (!state.replica.works().empty()) status = drain(state, status);
  state.replica.recorder().end_run(status.code());
  state.result = status.code();
  if (!status.ok()) {
    if (failures_on_this_thread() != failures_before && last_error().code == status.code()) {
      state.error = last_error();
    } else {
      state.error = ErrorRecord{};
      state.error.code = status.code();
      (void)write_marked(state.error.message, sizeof state.error.message,
                         "%s %d's function returned %s without a reason. Use `dist_fail()` to report one",
                         state.replica.name().word(), state.replica.name().number(),
                         status_name(status.code()));
    }
    if (state.error.culprit.replica == kNoReplica && state.error.collective == 0 && !state.error.of_all)
      state.error.culprit = state.replica.name();
  }
  groups_.leave(state.replica.rank(), group_run_, status, state.error);
  if (!status.ok() && nesting_.has_devices())
    nesting_.condemn_others(state.replica.rank(), report_for_devices(state.replica, status, state.error));
  state.finished.publish(run_, group_.policy());
}

// Completes the works that the function left in progress before the replica ends, because peers may still use
// its buffers.
Status ReplicaPool::drain(ReplicaState& state, Status returned) noexcept {
  const ErrorRecord failure = returned.ok() ? ErrorRecord{} : last_error();
  const Status ended = state.replica.works().drain(returned, failure);
  if (returned.ok()) return ended;
  // The report of a work is not the reason why this replica failed.
  last_error() = failure;
  return returned;
}

bool ReplicaPool::all_finished(uint32_t run) const noexcept {
  for (int i = 0; i < num_replicas(); ++i) {
    if (states_[i].finished.value.load(std::memory_order_acquire) != run) return false;
  }
  return true;
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

// Returns false if the deadline (of the host's clock; 0: none) has expired, or in a forked child.
bool ReplicaPool::await_finished(ReplicaState& state, int64_t deadline_ns) noexcept {
  const WaitPolicy& policy = group_.policy();
  Word& word = state.finished;
  const auto done = [&] { return word.value.load(std::memory_order_seq_cst) == run_; };
  while (!spin_until(policy, done, caller_in_the_way())) {
    if (memory().forked()) return false;
    const int64_t left = deadline_ns == 0 ? -1 : deadline_ns - host().now_ns();
    if (deadline_ns != 0 && left <= 0) return false;
    const uint32_t seen = word.value.load(std::memory_order_acquire);
    if (done()) return true;
    word.sleep(seen, host().slice_ns(left), policy, done);
  }
  return true;
}

// Runs replica 0's function on the caller's thread. If that thread ends inside it, its stack is destroyed,
// including what the run borrowed from it. So the peers are told, and must have returned before the run lock
// opens.
void ReplicaPool::perform_on_caller() {
  struct Returning {
    explicit Returning(ReplicaPool& pool) noexcept : pool_(pool) {}
    ~Returning() {
      if (returned_) return;
      for (int i = 1; i < pool_.num_replicas(); ++i) (void)pool_.await_finished(pool_.states_[i], 0);
      (void)pool_.over(failed_precondition("the caller's thread ended inside its run"));
    }
    ReplicaPool& pool_;
    bool returned_ = false;
  };
  Returning returning(*this);
  perform(states_[0]);
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

// Replaces threads that ended inside the last run. The creation is out of line, so that a normal run pays
// only for the check.
Status ReplicaPool::revive() noexcept {
  std::unique_lock replacing(starting_, std::defer_lock);
  if (idle_handler_.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    replacing.lock();
  for (int i = first_library_replica(); i < num_replicas(); ++i) {
    if (states_[i].thread_ended || !states_[i].thread.started()) [[unlikely]]
      DIST_TRY(restart(states_[i]));
  }
  return kOk;
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
  if (const Status revived = revive(); !revived.ok()) return refused(revived);

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
  // The replicas look at this cache line all the time, so it is written at once.
  const int cpu = threads() == DIST_THREADS_CALLER ? current_cpu() : caller_cpu_;
  body_ = body;
  caller_cpu_ = cpu;
  group_run_ = group_.run();
  ++run_;
  started_.publish(run_, group_.policy());
  if (IdleHandler* const handler = idle_handler_.load(std::memory_order_relaxed); handler != nullptr)
      [[unlikely]]
    handler->wake();
  if (threads() == DIST_THREADS_CALLER) {
    perform_on_caller();
    if (memory().forked()) return in_forked_child();
  }
  for (int i = first_library_replica(); i < num_replicas(); ++i) {
    ReplicaState& state = states_[i];
    if (state.finished.value.load(std::memory_order_acquire) == run_) continue;
    if (!await_finished(state, deadline.at_ns)) return over(overdue());
  }
  // The idle handler uses the replicas from now on without another call to revive().
  if (idle_handler_.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    (void)revive();
  return over(outcome());
}

bool ReplicaPool::is_inside_function() noexcept {
  const Current& here = current();
  return here.replica != nullptr || here.detached != nullptr || here.turn != nullptr;
}

Status ReplicaPool::run(const Body& body, const RunLimits& limits) {
  return settings().party == nullptr ? run_as<false>(body, limits) : run_as<true>(body, limits);
}

}  // namespace dist
