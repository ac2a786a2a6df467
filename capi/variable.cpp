// SPDX-License-Identifier: Apache-2.0
// dist.h, section 8: variables. Assignment inside replicas is with the collectives.
#include "core/value/variable.hpp"

#include "capi/guard.hpp"
#include "core/cross_device/update.hpp"

using namespace dist;
using namespace dist::capi;

void dist_variable_options_init(dist_variable_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_variable_create(dist_strategy* strategy, const dist_tensor* initial,
                                 const dist_variable_options* options, dist_variable** out_variable) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_variable_create", "strategy"));
    DIST_TRY(require(initial, "dist_variable_create", "initial"));
    DIST_TRY(require(out_variable, "dist_variable_create", "out_variable"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_variable_create"));
    dist_variable_options given;
    DIST_TRY(read_options(options, &given, "dist_variable_options"));
    Ref<Variable> variable;
    DIST_TRY(Variable::create(unwrap(strategy).memory(), unwrap(strategy).num_replicas(), *initial,
                              given.aggregation, given.name, &variable));
    *out_variable = wrap(variable.take());
    return kOk;
  });
}

void dist_variable_destroy(dist_variable* variable) {
  if (variable != nullptr) unwrap(variable)->release();
}

const char* dist_variable_name(const dist_variable* variable) {
  return variable == nullptr ? "" : unwrap(variable)->name();
}

dist_status dist_variable_component(const dist_variable* variable, int32_t replica_id,
                                    dist_tensor* out_tensor) {
  return guard([&]() -> Status {
    DIST_TRY(require(variable, "dist_variable_component", "variable"));
    DIST_TRY(require(out_tensor, "dist_variable_component", "out_tensor"));
    const Variable& copies = *unwrap(variable);
    if (replica_id < 0 || replica_id >= copies.num_replicas()) {
      return invalid_argument(
          "dist_variable_component(): replica_id is %d; variable \"%s\" has copies 0 to %d", replica_id,
          copies.name(), copies.num_replicas() - 1);
    }
    *out_tensor = copies.component(replica_id);
    return kOk;
  });
}

dist_status dist_variable_assign(dist_strategy* strategy, dist_variable* variable, int32_t how,
                                 dist_value* value) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_variable_assign", "strategy"));
    DIST_TRY(require(variable, "dist_variable_assign", "variable"));
    DIST_TRY(require(value, "dist_variable_assign", "value"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_variable_assign"));
    return assign(unwrap(strategy).cross_replica(), *unwrap(variable), how, *unwrap(value));
  });
}
