// SPDX-License-Identifier: Apache-2.0
// Creates distributed values by calling a function once for each component.
#pragma once

#include "core/value/value.hpp"

namespace dist {

struct ComponentFunction {
  // The caller owns the value's reference. NULL stands for no value.
  dist_status (*call)(GlobalReplica replica, int32_t num_replicas, Value** out_value, void* context);
  void* context;
};

// Calls the function for each replica of this process, in order, and combines the components leaf by leaf. If
// `distributed` is false, there is only one replica, and its component becomes the value.
Status values_from_function(Memory& memory, ReplicaCount replicas, bool distributed,
                            const ComponentFunction& function, ValueRef* out);

}  // namespace dist
