// SPDX-License-Identifier: Apache-2.0
// Scopes: the strategy and the replica that a thread is with, where a call does not name them. All of it is
// the calling thread's own.
//
// Outside of everything a thread is replica 0 of a default strategy of its own, made when somebody first
// asks. Being with a default strategy is no different from that: another one's scope or run may begin there.
#pragma once

#include "core/base/status.hpp"
#include "core/run/replica.hpp"
#include "core/strategy/strategy.hpp"

namespace dist {

Status enter_scope(Strategy& strategy) noexcept;
Status exit_scope(Strategy& strategy) noexcept;
// Chooses the strategy of this thread outside scopes; NULL: the default one again.
Status choose_strategy(Strategy* strategy) noexcept;

// Of the scope or function that the thread is in, else the chosen or the default one.
Status current_strategy(Strategy** out);
bool has_strategy() noexcept;
bool in_cross_replica_context() noexcept;
// NULL in the cross-replica context.
Status current_replica(Replica** out);

// Whose work the thread may wait for: as current_replica(), but nothing is made.
Replica* replica_here() noexcept;

// OK where functions of the cross-replica context may be called. `call` is the function's name.
Status check_cross_replica_context(const Strategy& strategy, const char* call) noexcept;
// OK where a run may begin; *out: the pool whose replicas are free for it.
Status pool_for_run(Strategy& strategy, const char* call, ReplicaPool** out);
// OK where this thread may become a replica of the strategy (dist_replica_enter()).
Status check_enter(const Strategy& strategy) noexcept;
// OK where the strategy may end: this thread would be left in its scope or function, or without its default
// one.
Status check_no_scope(const Strategy& strategy, const char* call) noexcept;

}  // namespace dist
