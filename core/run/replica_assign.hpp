// SPDX-License-Identifier: Apache-2.0
// Variables inside replicas: assigned, scattered to and read, by the variable's synchronization and
// aggregation.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/run/replica.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// What each replica gives is its own part, even where all replicas give the same memory.
Status replica_assign(Replica& replica, const CrossReplica& context, const Member& member, Variable& variable,
                      int32_t how, const dist_tensor& value);

// As in TensorFlow, an object that all replicas give is not a part of a sum.
Status replica_assign_value(Replica& replica, const CrossReplica& context, const Member& member,
                            Variable& variable, int32_t how, Value& value);

Status replica_scatter(Replica& replica, const CrossReplica& context, const Member& member,
                       Variable& variable, int32_t how, Value& slices);

// This replica's copy, as a new tensor.
Status replica_read(const Replica& replica, Variable& variable, ValueRef* out);

}  // namespace dist
