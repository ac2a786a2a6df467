// SPDX-License-Identifier: Apache-2.0
// merge_call: all replicas wait, and one function runs once for all of them, in the cross-replica context.
#pragma once

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/run/replica.hpp"
#include "core/value/value.hpp"

namespace dist {

struct MergeFunction {
  // `args` is a list. The result's reference is handed over.
  dist_status (*call)(Value& args, Value** out_result, void* context);
  void* context;
  const void* identity;  // equal on replicas of this process that ask for the same function
  MergeFor what = MergeFor::kFunction;
  uint64_t detail = 0;  // what else must be equal, in every process
};

// *out: this replica's component of the function's result; NULL where it gave none.
Status merge_call(Replica& replica, Memory& memory, const MergeFunction& function, Value* args,
                  const char* tag, int64_t timeout_ns, ValueRef* out);

}  // namespace dist
