// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/scope.hpp"

#include <utility>

#include "core/base/host_call.hpp"
#include "core/base/os/thread.hpp"
#include "core/run/current.hpp"
#include "core/run/inner_pool.hpp"
#include "core/strategy/reform.hpp"

namespace dist {
namespace {

// A thread's default strategy, and replica 0 as the thread's replica outside of runs. The replica belongs to
// a pool of its own, because the strategy's pool is for its runs.
//
// It has no destructor, because it may be used while the thread ends, after thread_local objects were
// destroyed.
class ThreadDefault {
 public:
  Status get();
  void end() noexcept;
  Strategy* strategy() const noexcept { return strategy_; }
  Replica* replica() const noexcept { return replica_; }

 private:
  Status make();

  Strategy* strategy_ = nullptr;
  InnerPool* outside_ = nullptr;
  Replica* replica_ = nullptr;
};

thread_local constinit ThreadDefault thread_default;

void end_default() noexcept { thread_default.end(); }

Status ThreadDefault::get() {
  if (strategy_ != nullptr && !strategy_->check_process().ok()) {
    // In a forked child, the parent's objects are useless and cannot be destroyed.
    strategy_ = nullptr;
    outside_ = nullptr;
    replica_ = nullptr;
  }
  if (replica_ != nullptr) return kOk;
  const Status made = make();
  if (!made.ok()) end();
  return made;
}

Status ThreadDefault::make() {
  StrategyOptions options;
  options.kind = DIST_STRATEGY_DEFAULT;
  if (strategy_ == nullptr) {
    (void)call_at_thread_end<end_default>();
    DIST_TRY(Strategy::create(options, &strategy_));
  }
  const Within outside(nullptr, false);  // enter() makes this thread a replica, which must not last
  if (outside_ == nullptr) DIST_TRY(strategy_->pool().beside(DIST_THREADS_HOST, &outside_));
  return outside_->pool().enter(GlobalReplica{0}, &replica_);
}

void ThreadDefault::end() noexcept {
  if (Replica* const replica = std::exchange(replica_, nullptr); replica != nullptr) {
    const Within inside(replica, false);
    (void)outside_->pool().leave(*replica, kOk);
  }
  InnerPool::destroy(std::exchange(outside_, nullptr));
  if (strategy_ != nullptr) (void)Strategy::destroy(std::exchange(strategy_, nullptr));
}

// The replica whose function this thread is in, even if it has detached from it; NULL: none.
const Replica* function_of(const Current& here) noexcept {
  return here.replica != nullptr ? here.replica : here.detached;
}

bool in_what_is_gone(const Current& here) noexcept {
  if (here.scope != nullptr) return static_cast<const Strategy*>(here.scope)->memory().forked();
  const Replica* const replica = function_of(here);
  return replica != nullptr && strategy_of(*replica).memory().forked();
}

// In no function and in no other strategy's scope: the most common case.
bool outside(const Strategy& strategy) noexcept {
  const Current& here = current();
  return here.replica == nullptr && here.detached == nullptr &&
         (here.scope == nullptr || here.scope == &strategy);
}

// The context of the thread from the viewpoint of a strategy.
enum class Place { kOpen, kInReplica, kWithAnother };

Place place_for(const Strategy& strategy) noexcept {
  const Current& here = current();
  // A forked child is in none of its parent's contexts.
  if (in_what_is_gone(here)) return Place::kOpen;
  // A scope is entered inside any function that the thread is in, so it is checked first.
  if (here.scope != nullptr) return here.scope == &strategy ? Place::kOpen : Place::kWithAnother;
  if (here.detached != nullptr && &strategy_of(*here.detached) == &strategy) return Place::kInReplica;
  if (here.replica == nullptr) return Place::kOpen;
  const Strategy& owner = strategy_of(*here.replica);
  if (&owner == &strategy) return here.merging ? Place::kOpen : Place::kInReplica;
  return owner.kind() == DIST_STRATEGY_DEFAULT ? Place::kOpen : Place::kWithAnother;
}

Status with_another(const char* call) noexcept {
  const Current& here = current();
  if (here.scope != nullptr) {
    return failed_precondition(
        "`%s()`: this `thread` is in the scope of another strategy. Use that strategy, or leave its scope "
        "first "
        "with `dist_scope_exit()` or `dist_set_strategy`(`NULL`).",
        call);
  }
  return failed_precondition(
      "`%s()`: this `thread` is inside the %s function of replica %d of another strategy. A run can use only "
      "its "
      "own strategy.",
      call, here.merging ? "merge" : "replica", here.replica->name().number());
}

// Fails in a turn whose update functions run on several threads, because these would start several runs at
// the same time.
Status check_turn(const Strategy& strategy, const char* call) noexcept {
  const Current& here = current();
  if (here.turn == nullptr || &here.turn->keeper() != &strategy) [[likely]]
    return kOk;
  if (!here.turn_shared && strategy.origin().threads != DIST_THREADS_HOST) return kOk;
  return failed_precondition(
      "`%s()` was called inside an update function, which runs have to wait for. Start the run before or "
      "after "
      "the update.",
      call);
}

}  // namespace

Strategy& strategy_of(const Replica& replica) noexcept {
  return static_cast<Strategy&>(replica.pool().keeper());
}

Status enter_scope(Strategy& strategy) noexcept {
  DIST_TRY(strategy.check_process());
  const bool is_default = strategy.kind() == DIST_STRATEGY_DEFAULT;
  const Place place = place_for(strategy);
  if (place == Place::kWithAnother) return with_another("dist_scope_enter");
  Current& here = current();
  if (is_default) {
    ++here.default_entered;
    return kOk;
  }
  if (place == Place::kInReplica) return check_cross_replica_context(strategy, "dist_scope_enter");
  here.scope = &strategy;
  ++here.entered;
  return kOk;
}

Status exit_scope(Strategy& strategy) noexcept {
  Current& here = current();
  const bool is_default = strategy.kind() == DIST_STRATEGY_DEFAULT;
  const bool innermost = is_default ? here.entered == 0 && here.default_entered > 0
                                    : here.entered > 0 && here.scope == &strategy;
  if (!innermost) {
    return failed_precondition(
        "`dist_scope_exit()`: the innermost scope of this `thread` belongs to another strategy. Exit scopes "
        "in "
        "reverse order, on the same thread and in the same function.");
  }
  if (is_default) {
    --here.default_entered;
  } else if (--here.entered == 0) {
    here.scope = here.chosen;
  }
  return kOk;
}

Status choose_strategy(Strategy* strategy) noexcept {
  if (strategy != nullptr) DIST_TRY(strategy->check_process());
  Current& here = current();
  if (here.replica != nullptr || here.entered + here.default_entered > 0) {
    return failed_precondition(
        "`dist_set_strategy()` must be called outside scopes and runs, but this `thread` is inside %s",
        here.entered + here.default_entered > 0 ? "a scope: `dist_scope_exit()` first"_m
        : here.merging                          ? "a merge function"
                                                : "a replica's function");
  }
  here.chosen = strategy != nullptr && strategy->kind() != DIST_STRATEGY_DEFAULT ? strategy : nullptr;
  here.scope = here.chosen;
  return kOk;
}

Status current_strategy(Strategy** out) {
  const Current& here = current();
  if (here.scope != nullptr) {
    *out = static_cast<Strategy*>(const_cast<Counted*>(here.scope));
  } else if (here.replica != nullptr) {
    *out = &strategy_of(*here.replica);
  } else {
    DIST_TRY(thread_default.get());
    *out = thread_default.strategy();
  }
  return kOk;
}

bool has_strategy() noexcept {
  const Current& here = current();
  if (here.scope != nullptr) return true;
  return here.replica != nullptr && strategy_of(*here.replica).kind() != DIST_STRATEGY_DEFAULT;
}

bool in_cross_replica_context() noexcept {
  const Current& here = current();
  return here.scope != nullptr || here.merging;
}

Status current_replica(Replica** out) {
  const Current& here = current();
  if (in_cross_replica_context()) {
    *out = nullptr;
  } else if (here.replica != nullptr) {
    *out = here.replica;
  } else {
    DIST_TRY(thread_default.get());
    *out = thread_default.replica();
  }
  return kOk;
}

Replica* replica_here() noexcept {
  const Current& here = current();
  return here.replica != nullptr ? here.replica : thread_default.replica();
}

Status check_cross_replica_context(const Strategy& strategy, const char* call) noexcept {
  if (outside(strategy)) [[likely]]
    return kOk;
  const Place place = place_for(strategy);
  if (place == Place::kOpen) return kOk;
  if (place == Place::kWithAnother) return with_another(call);
  return failed_precondition(
      "`%s()` must be called in the cross-replica context, but this `thread` is inside replica %d's "
      "function. "
      "Call it outside `dist_run()`, or in the function of `dist_merge_call()`.",
      call, function_of(current())->name().number());
}

Status pool_for_run(Strategy& strategy, const char* call, ReplicaPool** out) {
  DIST_TRY(strategy.check_process());
  DIST_TRY(check_turn(strategy, call));
  if (outside(strategy)) [[likely]] {
    if (strategy.reform() != DIST_REFORM_EXPLICIT) [[unlikely]]
      DIST_TRY(reform_before_run(strategy, call));
    *out = &strategy.pool();
    return kOk;
  }
  const Place place = place_for(strategy);
  if (place == Place::kWithAnother) return with_another(call);
  Replica* const replica = current().replica;
  if (place == Place::kInReplica) {
    return failed_precondition(
        "`%s()` was called inside replica %d's function, but runs do not nest. Use the replica's "
        "collectives, "
        "or run inside a merge function (`dist_merge_call()`).",
        call, function_of(current())->name().number());
  }
  const bool merging = replica != nullptr && &strategy_of(*replica) == &strategy;
  if (merging) return replica->pool().inner(out);
  *out = &strategy.pool();
  return kOk;
}

Status check_enter(const Strategy& strategy) noexcept {
  DIST_TRY(strategy.check_process());
  DIST_TRY(check_may_wait("dist_replica_enter"));
  DIST_TRY(check_turn(strategy, "dist_replica_enter"));
  return place_for(strategy) == Place::kWithAnother ? with_another("dist_replica_enter") : kOk;
}

namespace {
constinit thread_local const CallInProgress* in_progress_here = nullptr;
}  // namespace

CallInProgress::CallInProgress(const Strategy& strategy, const char* call) noexcept
    : strategy_(&strategy), call_(call), before_(in_progress_here) {
  in_progress_here = this;
}

CallInProgress::~CallInProgress() { in_progress_here = before_; }

Status check_may_end(const Strategy& strategy, const char* call) noexcept {
  DIST_TRY(check_may_wait(call));
  for (const CallInProgress* each = in_progress_here; each != nullptr; each = each->before_) {
    if (each->strategy_ == &strategy)
      return failed_precondition("`%s()`: this `thread` is in a callback of `%s()`. Return from it first.",
                                 call, each->call_);
  }
  const Current& here = current();
  if (here.scope == &strategy) {
    return failed_precondition(
        "`%s()`: this `thread` is in the strategy's scope. Leave it first with `dist_scope_exit()` or "
        "`dist_set_strategy`(`NULL`).",
        call);
  }
  if (const Replica* const replica = function_of(here);
      replica != nullptr && &strategy_of(*replica) == &strategy) {
    return failed_precondition(
        "`%s()`: this `thread` is inside replica %d's function, so it would wait for itself. Call it outside "
        "the "
        "replicas.",
        call, replica->name().number());
  }
  if (here.turn != nullptr && &here.turn->keeper() == &strategy) {
    return failed_precondition(
        "`%s()`: this `thread` is inside an update function, so it would wait for itself. Call it outside "
        "the "
        "update.",
        call);
  }
  if (thread_default.strategy() == &strategy)
    return failed_precondition("`%s()`: this is the thread's default strategy, which ends with its thread",
                               call);
  return kOk;
}

}  // namespace dist
