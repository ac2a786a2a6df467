// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/between_runs.hpp"

#include <algorithm>

#include "core/base/source_call.hpp"

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
  DIST_TRY(check_not_in_source(call));
  Current& here = current();
  ReplicaPool& pool = strategy.pool();
  const bool merging = here.replica != nullptr && here.replica->pool().owner() == &strategy;
  if (merging || here.turn == &pool) return kOk;
  DIST_TRY(pool.take_turn(call));
  pool_ = &pool;
  before_ = here.turn;
  here.turn = &pool;
  return kOk;
}

Status BetweenRuns::begin_for(const Value* value, Strategy& strategy, const char* call) noexcept {
  return value != nullptr && has_variable(*value) ? begin(strategy, call) : kOk;
}

BetweenRuns::~BetweenRuns() {
  if (pool_ == nullptr) return;
  current().turn = before_;
  pool_->end_turn();
}

}  // namespace dist
