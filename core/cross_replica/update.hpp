// SPDX-License-Identifier: Apache-2.0
// Calls the host's update functions, which change the copies of a variable in the cross-replica context.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// A host's dist_update_fn with its user_data. `call` unwraps `args`, which may be NULL.
struct UpdateFn {
  dist_status (*call)(dist_tensor* copy, Value* args, const void* context);
  const void* context;
};

// Calls `fn` on every copy with that replica's components of `args` (a list, or NULL), concurrently if the
// variable is large enough. Returns the result of the lowest replica that failed.
Status update(const CrossReplica& context, Variable& variable, const UpdateFn& fn, Value* args);

}  // namespace dist
