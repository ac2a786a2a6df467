// SPDX-License-Identifier: Apache-2.0
// Shared by saving and loading: which value of a variable is in the file, and the keys of the position.
#pragma once

#include "core/base/status.hpp"
#include "core/cross_replica/across_workers.hpp"
#include "core/cross_replica/assign.hpp"
#include "core/cross_replica/copies.hpp"
#include "core/input/source.hpp"
#include "core/value/variable.hpp"

namespace dist {

struct PositionField {
  const char* key;
  int64_t Position::*field;
};
inline constexpr PositionField kPosition[] = {{"libdist.position.pass", &Position::pass},
                                              {"libdist.position.elements", &Position::elements},
                                              {"libdist.position.examples", &Position::examples},
                                              {"libdist.position.batches", &Position::batches}};

inline bool is_sum(const Variable& variable) noexcept {
  return variable.sync_on_read() && variable.aggregation() == DIST_AGGREGATION_SUM;
}

// Whether the value is computed from all copies.
inline bool is_computed(const Variable& variable) noexcept {
  return variable.sync_on_read() && variable.aggregation() != DIST_AGGREGATION_ONLY_FIRST_REPLICA;
}

// Checks that the variable has a value that can be saved.
inline Status check_variable(const CrossReplica& context, Variable& variable) {
  DIST_TRY(check_owner(context, variable));
  if (is_sum(variable)) return check_op(DIST_REDUCE_SUM, variable.dtype());
  ValueRef none;
  const bool has_none = is_computed(variable) && variable.aggregation() == DIST_AGGREGATION_NONE;
  return has_none ? read(context, variable, &none) : kOk;  // fails with the reason
}

}  // namespace dist
