// SPDX-License-Identifier: Apache-2.0
#include "core/run/replica_assign.hpp"

namespace dist {

Status replica_assign(Replica& replica, const Caller& caller, Variable& variable, int32_t how,
                      const dist_tensor& value) {
  DIST_TRY(variable.check_assign(how, value, "value"));
  if (replica.id() >= variable.num_replicas()) {
    return invalid_argument(
        "variable %s has %d copies, and this is replica %d: it belongs to another strategy", variable.name(),
        variable.num_replicas(), replica.id());
  }
  if (variable.aggregation() == DIST_AGGREGATION_NONE) {
    variable.assign(how, replica.id(), value);
    return kOk;
  }
  // Reduced beside the copy, which an addition still needs, and dense, whatever the value's strides.
  ValueRef reduced;
  DIST_TRY(Value::copy_tensor(variable.memory(), value, &reduced));
  const dist_tensor dense = reduced->tensor();
  dist_tensor result = dense;
  switch (variable.aggregation()) {
    case DIST_AGGREGATION_SUM: DIST_TRY(all_reduce(caller, DIST_REDUCE_SUM, &dense, &result, 1)); break;
    case DIST_AGGREGATION_MEAN: DIST_TRY(all_reduce(caller, DIST_REDUCE_MEAN, &dense, &result, 1)); break;
    default: DIST_TRY(broadcast(caller, 0, &dense, &result, 1)); break;
  }
  variable.assign(how, replica.id(), result);
  return kOk;
}

}  // namespace dist
