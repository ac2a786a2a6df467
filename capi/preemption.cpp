// SPDX-License-Identifier: Apache-2.0
// preemption.h: saving a checkpoint before a job loses a machine.
#include "core/strategy/preemption.hpp"
#include <dist/experimental/preemption.h>

#include <memory_resource>
#include <vector>

#include "capi/guard.hpp"
#include "capi/options.hpp"
#include "capi/run.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

PreemptionHandler* unwrap(dist_preemption_handler* handle) noexcept {
  return reinterpret_cast<PreemptionHandler*>(handle);
}

}  // namespace

void dist_preemption_options_init(dist_preemption_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_preemption_handler_create(dist_strategy* strategy, const dist_preemption_options* options,
                                           dist_preemption_handler** out_handler) {
  constexpr const char* kCall = "dist_preemption_handler_create";
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, kCall, "strategy"));
    DIST_TRY(require(out_handler, kCall, "out_handler"));
    dist_preemption_options given;
    DIST_TRY(read_options(options, &given, "dist_preemption_options"));
    DIST_TRY(require_zero(given.reserved, "dist_preemption_options.reserved"));
    DIST_TRY(check_list(given.variables, given.num_variables, kCall, "options->variables",
                        "options->num_variables"));
    Strategy& self = capi::unwrap(strategy);
    std::pmr::vector<Variable*> variables(&self.memory());
    for (std::size_t i = 0; i < given.num_variables; ++i) {
      DIST_TRY(require(given.variables[i], kCall, "a variable"));
      variables.push_back(capi::unwrap(given.variables[i]));
    }
    Ref<PreemptionHandler> made;
    DIST_TRY(PreemptionHandler::create(self, {given.path, variables, given.grace_ns}, &made));
    *out_handler = reinterpret_cast<dist_preemption_handler*>(made.take());
    return kOk;
  });
}

void dist_preemption_handler_destroy(dist_preemption_handler* handler) {
  if (handler != nullptr && !unwrap(handler)->memory().forked()) unwrap(handler)->release();
}

void dist_preemption_notify(dist_preemption_handler* handler) {
  if (handler != nullptr) unwrap(handler)->notify();
}

dist_status dist_preemption_run(dist_preemption_handler* handler, dist_replica_fn fn, void* user_data,
                                const dist_run_options* options) {
  constexpr const char* kCall = "dist_preemption_run";
  return guard([&]() -> Status {
    DIST_TRY(require(handler, kCall, "handler"));
    dist_run_options given;
    DIST_TRY(read_options(options, &given, "dist_run_options"));
    PreemptionState state = PreemptionState::kNone;
    DIST_TRY(unwrap(handler)->save_if_preempted(kCall, capi::unwrap(given.cancel), &state));
    if (state == PreemptionState::kOver) return unwrap(handler)->over(kCall);
    DIST_TRY(run_for(kCall, wrap(&unwrap(handler)->strategy()), fn, user_data, options));
    unwrap(handler)->count_run();
    return kOk;
  });
}

dist_status dist_preemption_save_if_preempted(dist_preemption_handler* handler, dist_cancel* cancel,
                                              dist_preemption_state* out_state) {
  constexpr const char* kCall = "dist_preemption_save_if_preempted";
  return guard([&]() -> Status {
    DIST_TRY(require(handler, kCall, "handler"));
    DIST_TRY(require(out_state, kCall, "out_state"));
    PreemptionState state = PreemptionState::kNone;
    DIST_TRY(unwrap(handler)->save_if_preempted(kCall, capi::unwrap(cancel), &state));
    *out_state = static_cast<dist_preemption_state>(DIST_PREEMPTION_NONE + static_cast<int32_t>(state));
    return kOk;
  });
}

void dist_preemption_count_run(dist_preemption_handler* handler) {
  if (handler != nullptr) unwrap(handler)->count_run();
}

int64_t dist_preemption_total_run_calls(const dist_preemption_handler* handler) {
  return handler == nullptr ? 0 : unwrap(const_cast<dist_preemption_handler*>(handler))->total_run_calls();
}
