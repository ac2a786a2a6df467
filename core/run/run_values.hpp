// SPDX-License-Identifier: Apache-2.0
// Runs with arguments and results. Each replica receives its components of the arguments (each logical device
// its shards), and the results are combined into one value.
#pragma once

#include <memory_resource>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/run/replica_pool.hpp"
#include "core/value/value.hpp"

namespace dist {

struct ValuesFunction {
  // The callee passes the ownership of *out_result to the caller; NULL: no result.
  dist_status (*call)(const ValuesFunction& self, Replica& replica, Value* args, Value* kwargs,
                      Value** out_result);
  // The host's function and data. A late replica may call it after run_values() has returned at its deadline,
  // so it must not point to the caller's stack.
  void (*host_function)();
  void* user_data;
};

// The data shared by the members of one run. Counted, because a member that is late still uses it after the deadline.
class ValuesRun final : public Counted {
 public:
  // Selects a member's part of an argument.
  using PartOf = Status (*)(Memory& memory, Value* value, int rank, ValueRef* out);

  ValuesRun(Memory& memory, const ValuesFunction& function, PartOf part_of, Value* args, Value* kwargs,
            int num_members);

  // The body for every member.
  Body body() noexcept;
  // The result of each member, once all have returned; NULL: none.
  std::pmr::vector<Value*> results() const;

 private:
  static void about_to_start(void* context);
  static dist_status call_from(Replica& member, const Body& self);
  Status call(Replica& member);

  const ValuesFunction function_;
  const PartOf part_of_;
  const ValueRef args_;
  const ValueRef kwargs_;
  std::pmr::vector<ValueRef> results_;
};

// Reads the arguments of a run. A value of `args` that is neither a list nor a tuple becomes the only item of a
// tuple, and `kwargs` must be a dictionary; both may be NULL.
Status read_arguments(Memory& memory, Value* args, const Value* kwargs, ValueRef* out_args);

Status run_values(ReplicaPool& pool, Memory& memory, const ValuesFunction& function, Value* args,
                  Value* kwargs, const RunLimits& limits, ValueRef* out);

}  // namespace dist
