// SPDX-License-Identifier: Apache-2.0
// Scopes: the strategy and the replica of a thread, where a call does not name them. All of this is state of
// the calling thread.
//
// Outside all scopes and functions a thread is replica 0 of its own default strategy, which is made when it
// is first asked for. A thread in a default strategy's scope is outside, too: another strategy's scope or run
// may begin there.
#pragma once

#include "core/base/status.hpp"
#include "core/run/replica.hpp"
#include "core/strategy/strategy.hpp"

namespace dist {

Status enter_scope(Strategy& strategy) noexcept;
Status exit_scope(Strategy& strategy) noexcept;
// Chooses the strategy of this thread outside scopes; NULL: the default one again.
Status choose_strategy(Strategy* strategy) noexcept;

// The strategy of the scope or function that the thread is in, else the chosen or the default one.
Status current_strategy(Strategy** out);
bool has_strategy() noexcept;
bool in_cross_replica_context() noexcept;
// NULL in the cross-replica context.
Status current_replica(Replica** out);

// The replica whose work the thread may wait for: as current_replica(), but makes no default strategy.
Replica* replica_here() noexcept;

// OK where functions of the cross-replica context may be called. `call` is the function's name.
Status check_cross_replica_context(const Strategy& strategy, const char* call) noexcept;
// OK where a run may begin; *out: the pool whose replicas are free for it.
Status pool_for_run(Strategy& strategy, const char* call, ReplicaPool** out);
// OK where this thread may become a replica of the strategy (dist_replica_enter()).
Status check_enter(const Strategy& strategy) noexcept;
// OK where this thread may end the strategy: it is neither in the strategy's scope nor in a function of it,
// and the strategy is not its default one.
Status check_no_scope(const Strategy& strategy, const char* call) noexcept;

}  // namespace dist
