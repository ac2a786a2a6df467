// SPDX-License-Identifier: Apache-2.0
// Runs with arguments and results: each replica gets its components, each logical device its shards; the
// results become one value.
#pragma once

#include <memory_resource>
#include <vector>

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

// What the members of one run share. Counted: a member that is late past the run's deadline still uses it.
class ValuesRun final : public Counted {
 public:
  // What a member gets of the arguments.
  using PartOf = Status (*)(Memory& memory, Value* value, int rank, ValueRef* out);

  ValuesRun(Memory& memory, const ValuesFunction& function, PartOf part_of, Value* args, Value* kwargs,
            int num_members);

  // What every member is to run.
  Body body() noexcept;
  // What each has given, once all are back; NULL: nothing.
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

// What a run takes: positional arguments in a list or tuple, named ones in a dictionary; both may be NULL.
Status check_arguments(const Value* args, const Value* kwargs) noexcept;

Status run_values(ReplicaPool& pool, Memory& memory, const ValuesFunction& function, Value* args,
                  Value* kwargs, const RunLimits& limits, ValueRef* out);

}  // namespace dist
