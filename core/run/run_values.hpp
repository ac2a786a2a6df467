// SPDX-License-Identifier: Apache-2.0
// A run with arguments and results: each replica gets its components, the results become one value.
#pragma once

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/run/replica_pool.hpp"
#include "core/value/value.hpp"

namespace dist {

struct ValuesFunction {
  // The result's reference is handed over; NULL: none.
  dist_status (*call)(const ValuesFunction& self, Replica& replica, Value* args, Value* kwargs,
                      Value** out_result);
  // The host's function and its data. A late replica may call after run_values() has returned at its
  // deadline, so nothing here points to the caller's stack.
  void (*host_function)();
  void* user_data;
};

// What a run takes: positional arguments in a list or tuple, named ones in a dictionary; both may be NULL.
Status check_arguments(const Value* args, const Value* kwargs) noexcept;

Status run_values(ReplicaPool& pool, Memory& memory, const ValuesFunction& function, Value* args,
                  Value* kwargs, const RunLimits& limits, ValueRef* out);

}  // namespace dist
