// SPDX-License-Identifier: Apache-2.0
// Updates whose functions have named arguments and results, know which copy they are for, and may reduce and
// run.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/strategy/strategy.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// The copy that one call of an update function is for.
struct UpdatePlace {
  GlobalReplica replica;  // whose copy it is; kNoReplica: that of no single replica
  const char* device;     // "" for the default strategy
  dist_tensor* copy;      // NULL: the update is of something that is no variable
};

struct UpdateValuesFn {
  // The result's reference is handed over; NULL: none.
  dist_status (*call)(const UpdatePlace& place, Value* args, Value* kwargs, Value** out_result,
                      const void* context);
  const void* context;
  const void* identity;  // equal on replicas that ask for the same function
};

struct UpdateCall {
  Variable* variable = nullptr;  // NULL: once for each device that variables are on
  UpdateValuesFn fn;
  Value* args = nullptr;    // a list or tuple, or NULL
  Value* kwargs = nullptr;  // a dictionary, or NULL
  bool ungrouped = false;   // each leaf of the result is a tuple of what the calls gave
};

// Calls the function for one copy after another, on this thread, in the cross-replica context.
Status update_values(Strategy& strategy, const UpdateCall& update, ValueRef* out);

// The same from inside replicas: all of them meet, and what they give as arguments is merged. *out: this
// replica's component of the result.
Status replica_update_values(Replica& replica, Strategy& strategy, const UpdateCall& update, ValueRef* out);

}  // namespace dist
