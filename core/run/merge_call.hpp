// SPDX-License-Identifier: Apache-2.0
// merge_call: all replicas wait while one function runs once, on behalf of all of them, in cross-replica
// context.
//
// It is a collective: all replicas must call it with the same function, and if one does not come, all of them
// fail.
#pragma once

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/run/replica.hpp"
#include "core/value/value.hpp"

namespace dist {

struct MergeFunction {
  // `args` is a list or tuple, and `kwargs` a dictionary or NULL. The callee passes the ownership of *out_result to
  // the caller.
  dist_status (*call)(Value& args, Value* kwargs, Value** out_result, void* context);
  void* context;
  const void* identity;  // equal for all replicas of this process that request the same function
  MergeFor what = MergeFor::kFunction;
  uint64_t detail = 0;  // must also be equal, in all processes
};

// The arguments of one replica: a list or tuple, and a dictionary. Both may be NULL.
struct MergeArguments {
  Value* args;
  Value* kwargs = nullptr;
};

// *out receives this replica's component of the result, or NULL if the function returned none.
Status merge_call(Replica& replica, Memory& memory, const MergeFunction& function,
                  const MergeArguments& arguments, const char* tag, int64_t timeout_ns, ValueRef* out);

}  // namespace dist
