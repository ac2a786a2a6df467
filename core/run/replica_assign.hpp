// SPDX-License-Identifier: Apache-2.0
// Assignment to a variable inside replicas, by the variable's aggregation.
#pragma once

#include "core/base/status.hpp"
#include "core/run/replica.hpp"
#include "core/value/variable.hpp"

namespace dist {

Status replica_assign(Replica& replica, const Caller& caller, Variable& variable, int32_t how,
                      const dist_tensor& value);

}  // namespace dist
