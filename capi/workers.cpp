// SPDX-License-Identifier: Apache-2.0
// workers.h: the connection between workers.
#include "capi/workers.hpp"

#include "capi/guard.hpp"
#include "capi/options.hpp"
#include "core/net/in_process.hpp"
#include "core/strategy/reform.hpp"

using namespace dist;
using namespace dist::capi;

void dist_network_options_init(dist_network_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_network_create(int32_t num_workers, const dist_network_options* options,
                                dist_network** out_network) {
  constexpr const char* kCall = "dist_network_create";
  return guard([&]() -> Status {
    DIST_TRY(require(out_network, kCall, "out_network"));
    dist_network_options given;
    DIST_TRY(read_options(options, &given, "dist_network_options"));
    DIST_TRY(require_zero(given.reserved, "dist_network_options.reserved"));
    int64_t credit_bytes = 0;
    DIST_TRY(read_size(given.credit_bytes, "dist_network_options.credit_bytes", &credit_bytes));
    Ref<InProcessNetwork> made;
    DIST_TRY(InProcessNetwork::create(given.allocator, num_workers, credit_bytes, &made));
    *out_network = wrap(made.take());
    return kOk;
  });
}

void dist_reform_options_init(dist_reform_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_strategy_reform(dist_strategy* strategy, const dist_reform_options* options) {
  constexpr const char* kCall = "dist_strategy_reform";
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, kCall, "strategy"));
    dist_reform_options given;
    DIST_TRY(read_options(options, &given, "dist_reform_options"));
    DIST_TRY(require_timeout(given.timeout_ns, "dist_reform_options.timeout_ns"));
    return reform(unwrap(strategy), {given.min_workers, given.window_ns, given.timeout_ns}, kCall);
  });
}

dist_status dist_strategy_reform_due(dist_strategy* strategy, int32_t* out_due) {
  constexpr const char* kCall = "dist_strategy_reform_due";
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, kCall, "strategy"));
    DIST_TRY(require(out_due, kCall, "out_due"));
    bool due = false;
    DIST_TRY(reform_due(unwrap(strategy), kCall, &due));
    *out_due = due ? 1 : 0;
    return kOk;
  });
}

void dist_network_destroy(dist_network* network) {
  if (network != nullptr && !unwrap(network)->memory().forked()) unwrap(network)->release();
}
