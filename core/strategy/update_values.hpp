// SPDX-License-Identifier: Apache-2.0
// Updates whose functions take named arguments, return results, know their copy, and may reduce and start
// runs.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/strategy/strategy.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// The copy that a call of an update function is for.
struct UpdatePlace {
  GlobalReplica replica;  // its owner; kNoReplica if no single replica owns it
  const char* device;     // "" for the default strategy
  dist_tensor* copy;      // NULL if a value other than a variable is updated
};

struct UpdateValuesFn {
  // The callee passes the ownership of *out_result to the caller; NULL: no result.
  dist_status (*call)(const UpdatePlace& place, Value* args, Value* kwargs, Value** out_result,
                      const void* context);
  const void* context;
  const void* identity;  // equal for replicas that request the same function
};

struct UpdateCall {
  Variable* variable = nullptr;  // NULL: one call for each device with variables
  UpdateValuesFn fn;
  Value* args = nullptr;    // a list or tuple; may be NULL
  Value* kwargs = nullptr;  // a dictionary; may be NULL
  bool ungrouped = false;   // each leaf of the result is a tuple with one entry per call
};

// Calls the function for one copy after the other, on this thread, in cross-replica context.
Status update_values(Strategy& strategy, const UpdateCall& update, ValueRef* out);

// The same from inside replicas: a collective that merges the arguments of all replicas. *out receives this
// replica's component of the result.
Status replica_update_values(Replica& replica, Strategy& strategy, const UpdateCall& update, ValueRef* out);

}  // namespace dist
