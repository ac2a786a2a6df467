// SPDX-License-Identifier: Apache-2.0
// inspect.h: looking at values and variables.
#include "core/inspect/describe.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "capi/guard.hpp"
#include "core/inspect/drift.hpp"
#include "core/strategy/between_runs.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

template <class Described>
dist_status describe_to(const Described* what, const char* call, const char* name, dist_text_fn fn,
                        void* user_data) {
  return guard([&]() -> Status {
    DIST_TRY(require(what, call, name));
    if (fn == nullptr) return invalid_argument("%s(): fn is NULL", call);
    TextOut out(fn, user_data);
    describe(*what, out);
    out.flush();
    return kOk;
  });
}

// The first version's: what every caller has.
constexpr std::size_t kDriftBytes = offsetof(dist_drift, element) + sizeof(dist_drift::element);

// As much of it as the caller knows.
void write_drift(const Drift& drift, dist_drift* out) noexcept {
  const uint32_t size = out->struct_size;
  const dist_drift known{size, drift.num_copies, drift.replica, drift.expected_replica, drift.element};
  std::memcpy(out, &known, std::min<std::size_t>(size, sizeof known));
}

}  // namespace

dist_status dist_value_describe(const dist_value* value, dist_text_fn fn, void* user_data) {
  return describe_to(unwrap(value), "dist_value_describe", "value", fn, user_data);
}

dist_status dist_variable_describe(const dist_variable* variable, dist_text_fn fn, void* user_data) {
  return describe_to(unwrap(variable), "dist_variable_describe", "variable", fn, user_data);
}

dist_status dist_variable_check_drift(dist_strategy* strategy, dist_variable* variable,
                                      dist_drift* out_drift) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_variable_check_drift", "strategy"));
    DIST_TRY(require(variable, "dist_variable_check_drift", "variable"));
    if (out_drift != nullptr && out_drift->struct_size < kDriftBytes) {
      return invalid_argument("dist_drift.struct_size is %u: begin with DIST_DRIFT_INIT",
                              out_drift->struct_size);
    }
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_variable_check_drift"));
    BetweenRuns turn;
    DIST_TRY(turn.begin(unwrap(strategy), "dist_variable_check_drift"));
    Drift drift;
    const Status status = check_drift(unwrap(strategy).cross_replica(), *unwrap(variable), &drift);
    if (out_drift != nullptr && (status.ok() || status.code() == DIST_DATA_LOSS)) {
      write_drift(drift, out_drift);
    }
    return status;
  });
}
