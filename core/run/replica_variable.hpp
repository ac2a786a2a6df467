// SPDX-License-Identifier: Apache-2.0
// Creates variables inside replicas: all replicas request the same name together, and the first run that
// requests it creates the variable. Later runs get the existing one.
#pragma once

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/run/replica.hpp"
#include "core/value/value.hpp"
#include "core/value/variable_registry.hpp"

namespace dist {

// The initial value of a variable: a tensor, or a function that is called once.
struct InitialValue {
  const dist_tensor* tensor = nullptr;
  dist_status (*call)(const InitialValue& self, Value** out_value) = nullptr;
  const void* context = nullptr;
};

// Creates a variable with this initial value.
Status create_variable(const CrossReplica& context, const VariableHome& home, const VariableOptions& options,
                       const InitialValue& initial, Ref<Variable>* out);

// *out receives the strategy's variable with the name in `options`. Only the initial value of replica 0 is
// used.
Status replica_variable(Replica& replica, const CrossReplica& context, const VariableHome& home,
                        VariableRegistry& registry, const Member& member, const VariableOptions& options,
                        const InitialValue& initial, Variable** out);

}  // namespace dist
