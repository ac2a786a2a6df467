// SPDX-License-Identifier: Apache-2.0
// Variables that replicas make: all replicas ask for a name together, and the first run that asks makes the
// variable.
#pragma once

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/run/replica.hpp"
#include "core/value/value.hpp"
#include "core/value/variable_registry.hpp"

namespace dist {

// Where a variable's initial value comes from: a tensor, or a function that is called once.
struct InitialValue {
  const dist_tensor* tensor = nullptr;
  dist_status (*call)(const InitialValue& self, Value** out_value) = nullptr;
  const void* context = nullptr;
};

// Makes a variable of the initial value.
Status create_variable(const CrossReplica& context, const VariableHome& home, const VariableOptions& options,
                       const InitialValue& initial, Ref<Variable>* out);

// *out: the strategy's variable of the name in `options`. Replica 0's initial value counts.
Status replica_variable(Replica& replica, const CrossReplica& context, const VariableHome& home,
                        VariableRegistry& registry, const Member& member, const VariableOptions& options,
                        const InitialValue& initial, Variable** out);

}  // namespace dist
