// SPDX-License-Identifier: Apache-2.0
// scope.h: the current strategy and replica of a thread.
#include "core/strategy/scope.hpp"
#include <dist/tf.h>

#include "capi/guard.hpp"
#include "core/strategy/colocate.hpp"

using namespace dist;
using namespace dist::capi;

dist_status dist_scope_enter(dist_strategy* strategy) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_scope_enter", "strategy"));
    return enter_scope(unwrap(strategy));
  });
}

dist_status dist_scope_exit(dist_strategy* strategy) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_scope_exit", "strategy"));
    return exit_scope(unwrap(strategy));
  });
}

dist_status dist_set_strategy(dist_strategy* strategy) {
  return guard(
      [&]() -> Status { return choose_strategy(strategy == nullptr ? nullptr : &unwrap(strategy)); });
}

dist_strategy* dist_get_strategy(void) {
  Strategy* strategy = nullptr;
  const dist_status status = guard([&]() -> Status { return current_strategy(&strategy); });
  return status == DIST_OK ? wrap(strategy) : nullptr;
}

int32_t dist_has_strategy(void) { return has_strategy() ? 1 : 0; }

int32_t dist_in_cross_replica_context(void) { return in_cross_replica_context() ? 1 : 0; }

dist_replica* dist_get_replica(void) {
  Replica* replica = nullptr;
  const dist_status status = guard([&]() -> Status { return current_replica(&replica); });
  return status == DIST_OK ? wrap(replica) : nullptr;
}

dist_status dist_colocate_enter(dist_strategy* strategy, const dist_value* variable) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_colocate_enter", "strategy"));
    DIST_TRY(require(variable, "dist_colocate_enter", "variable"));
    return enter_colocation(unwrap(strategy), *unwrap(variable));
  });
}

dist_status dist_colocate_exit(dist_strategy* strategy) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_colocate_exit", "strategy"));
    return exit_colocation(unwrap(strategy));
  });
}
