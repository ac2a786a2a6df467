// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/between_runs.hpp"

#include <algorithm>

#include "core/base/host_call.hpp"

namespace dist {
namespace {

bool has_variable(const Value& value) noexcept {
  if (value.variable() != nullptr) return true;
  const auto items = value.items();
  return std::any_of(items.begin(), items.end(),
                     [](const ValueRef& item) { return item && has_variable(*item); });
}

}  // namespace

Status BetweenRuns::begin(Strategy& strategy, const char* call) noexcept {
  DIST_TRY(check_may_wait(call));
  note(strategy, call);
  Current& here = current();
  ReplicaPool& pool = strategy.pool();
  const bool merging = here.replica != nullptr && &strategy_of(*here.replica) == &strategy;
  if (merging || here.turn == &pool) return kOk;
  DIST_TRY(pool.take_turn(call));
  pool_ = &pool;
  failures_ = failures_on_this_thread();
  before_ = here.turn;
  here.turn = &pool;
  return kOk;
}

Status BetweenRuns::begin_for(const Value* value, Strategy& strategy, const char* call) noexcept {
  if (strategy.workers() != nullptr) return begin_among_workers(strategy, call);
  note(strategy, call);
  return value != nullptr && has_variable(*value) ? begin(strategy, call) : kOk;
}

Status BetweenRuns::begin_among_workers(Strategy& strategy, const char* call) noexcept {
  note(strategy, call);
  WorkerLink* const workers = strategy.workers();
  if (workers == nullptr) return kOk;
  if (pool_ == nullptr) {
    if (const Status begun = begin(strategy, call); !begun.ok()) {
      workers->owe(last_error());
      return begun;
    }
  }
  if (pool_ != nullptr) workers->begin_turn();
  return kOk;
}

BetweenRuns::~BetweenRuns() {
  if (pool_ == nullptr) return;
  current().turn = before_;
  if (WorkerLink* const workers = pool_->workers(); workers != nullptr) workers->end_turn(failures_);
  pool_->end_turn();
}

}  // namespace dist
