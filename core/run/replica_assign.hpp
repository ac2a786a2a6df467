// SPDX-License-Identifier: Apache-2.0
// Assigns to, scatters into and reads variables inside replicas, following the variable's synchronization and
// aggregation.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/run/replica.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// Each replica's argument counts as a separate contribution, even if all replicas pass the same memory.
Status replica_assign(Replica& replica, const CrossReplica& context, const Member& member, Variable& variable,
                      int32_t how, const dist_tensor& value);

// As in TensorFlow, an object passed by all replicas counts once: it is not summed.
Status replica_assign_value(Replica& replica, const CrossReplica& context, const Member& member,
                            Variable& variable, int32_t how, Value& value);

Status replica_scatter(Replica& replica, const CrossReplica& context, const Member& member,
                       Variable& variable, int32_t how, Value& slices);

// Returns this replica's copy as a new tensor.
Status replica_read(const Replica& replica, Variable& variable, ValueRef* out);

}  // namespace dist
