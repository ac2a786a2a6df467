// SPDX-License-Identifier: Apache-2.0
// dist.h, section 3: strategies.
#include "core/strategy/strategy.hpp"

#include "capi/guard.hpp"

using namespace dist;
using namespace dist::capi;

void dist_strategy_options_init(dist_strategy_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_strategy_create(const dist_strategy_options* options, dist_strategy** out_strategy) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_strategy, "dist_strategy_create", "out_strategy"));
    dist_strategy_options given;
    DIST_TRY(read_options(options, &given, "dist_strategy_options"));
    DIST_TRY(require_zero(given.reserved, "dist_strategy_options"));
    StrategyOptions wanted;
    wanted.kind = given.kind;
    wanted.num_replicas = given.num_replicas;
    wanted.threads = given.threads;
    wanted.placement = given.placement;
    wanted.timeout_ns = given.timeout_ns;
    wanted.allocator = given.allocator;
    wanted.host = {given.log, given.log_user_data, given.clock, given.clock_user_data};
    Strategy* strategy = nullptr;
    DIST_TRY(Strategy::create(wanted, &strategy));
    *out_strategy = wrap(strategy);
    return kOk;
  });
}

dist_status dist_strategy_destroy(dist_strategy* strategy) {
  return Strategy::destroy(reinterpret_cast<Strategy*>(strategy)).code();
}

int32_t dist_strategy_num_replicas(const dist_strategy* strategy) {
  return strategy == nullptr ? 0 : unwrap(strategy).num_replicas();
}

dist_status dist_strategy_cancel(dist_strategy* strategy) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_strategy_cancel", "strategy"));
    DIST_TRY(unwrap(strategy).check_process());
    unwrap(strategy).pool().cancel();
    return kOk;
  });
}
