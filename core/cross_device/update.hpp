// SPDX-License-Identifier: Apache-2.0
// What the host does to variables and values from outside the replicas.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/cross_device/cross_replica.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// Assigns to every copy: a tensor to all, components each to their own. Nothing is written where anything
// does not fit.
Status assign(const CrossReplica& context, Variable& variable, int32_t how, Value& value);

// A host's dist_update_fn, with its user_data: `call` unwraps `args`, which may be NULL.
struct UpdateFn {
  dist_status (*call)(dist_tensor* copy, Value* args, const void* context);
  const void* context;
};

// Calls `fn` on every copy with that replica's components of `args` (a list, or NULL); the copies of a
// variable that is worth it at the same time. The result is that of the lowest replica that failed.
Status update(const CrossReplica& context, Variable& variable, const UpdateFn& fn, Value* args);

// A list of a value's components, or of a variable's copies, in replica order; else a list of the value
// itself.
Status local_results(const CrossReplica& context, Value& value, ValueRef* out);

}  // namespace dist
