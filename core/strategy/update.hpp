// SPDX-License-Identifier: Apache-2.0
// Calls the host's update functions, which change the copies of a variable in the cross-replica context. They take named
// arguments, return results and know their copy.
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

// A host's dist_update_fn with its user_data.
struct UpdateFn {
  // The callee passes the ownership of *out_result to the caller; NULL: no result.
  dist_status (*call)(const UpdatePlace& place, Value* args, Value* kwargs, Value** out_result,
                      const void* context);
  const void* context;
  const void* identity;  // equal for replicas that request the same function
};

struct UpdateCall {
  Variable* variable = nullptr;  // NULL: one call for each device with variables
  UpdateFn fn;
  Value* args = nullptr;    // a list or tuple; may be NULL
  Value* kwargs = nullptr;  // a dictionary; may be NULL
  bool ungrouped = false;   // each leaf of the result is a tuple with one entry per call
  bool parallel =
      false;  // calls for the copies of a large variable run at the same time, on oneTBB's threads
};

// Calls the function for every copy, in cross-replica context. Fails like the call for the lowest copy that failed.
Status update(Strategy& strategy, const UpdateCall& update, ValueRef* out);

// The same from inside replicas: a collective that merges the arguments of all replicas. *out receives this
// replica's component of the result.
Status replica_update(Replica& replica, Strategy& strategy, const UpdateCall& update, ValueRef* out);

}  // namespace dist
