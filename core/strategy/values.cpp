// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/values.hpp"

namespace dist {

Status values_from_function(Strategy& strategy, const ComponentFunction& function, ValueRef* out) {
  const bool distributed = !has_one_replica(strategy.kind());
  if (distributed) DIST_TRY(strategy.check_cross_replica("dist_values_from_function"));
  DIST_TRY(strategy.check_process());
  return values_from_function(strategy.memory(), strategy.replicas(), distributed, function, out);
}

}  // namespace dist
