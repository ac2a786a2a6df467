// SPDX-License-Identifier: Apache-2.0
// Scopes: the strategy and replica that apply to a thread when a call names neither. All of this is state of
// the calling thread.
//
// Outside of all scopes and functions, a thread is replica 0 of its own default strategy, which is created on
// first use. A thread in the scope of a default strategy counts as outside: it may enter another strategy's
// scope or start a run.
#pragma once

#include "core/base/status.hpp"
#include "core/run/replica.hpp"
#include "core/strategy/strategy.hpp"

namespace dist {

// The strategy that a replica or a logical device belongs to. A pool holds its keeper for its own reasons, and only
// core/strategy, which gives all pools their keeper, knows that it is the strategy.
Strategy& strategy_of(const Replica& replica) noexcept;

Status enter_scope(Strategy& strategy) noexcept;
Status exit_scope(Strategy& strategy) noexcept;
// Sets the strategy that applies outside of scopes on this thread; NULL: the default strategy again.
Status choose_strategy(Strategy* strategy) noexcept;

// The strategy of the scope or function that the thread is in, otherwise the chosen or default one.
Status current_strategy(Strategy** out);
bool has_strategy() noexcept;
bool in_cross_replica_context() noexcept;
// NULL in cross-replica context.
Status current_replica(Replica** out);

// Like current_replica(), but creates no default strategy. Used to decide whether the thread may wait.
Replica* replica_here() noexcept;

// Checks that cross-replica functions may be called here. `call` is the host's function.
Status check_cross_replica_context(const Strategy& strategy, const char* call) noexcept;
// Checks that a run may begin. *out receives the pool whose replicas are available for it.
Status pool_for_run(Strategy& strategy, const char* call, ReplicaPool** out);
// Checks that this thread may become a replica of the strategy (dist_replica_enter()).
Status check_enter(const Strategy& strategy) noexcept;
// While it exists, this thread is in a call that uses the strategy and calls the host. `call` is its name.
class CallInProgress {
 public:
  CallInProgress(const Strategy& strategy, const char* call) noexcept;
  ~CallInProgress();
  CallInProgress(const CallInProgress&) = delete;
  CallInProgress& operator=(const CallInProgress&) = delete;

 private:
  const Strategy* const strategy_;
  const char* const call_;
  const CallInProgress* const before_;
  friend Status check_may_end(const Strategy& strategy, const char* call) noexcept;
};

// Checks that this thread may end the strategy: it is neither in the strategy's scope, nor in one of its functions or
// callbacks, and the strategy is not its default one.
Status check_may_end(const Strategy& strategy, const char* call) noexcept;

}  // namespace dist
