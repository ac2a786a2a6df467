// SPDX-License-Identifier: Apache-2.0
#include "core/run/run_values.hpp"

#include <new>

namespace dist {

ValuesRun::ValuesRun(Memory& memory, const ValuesFunction& function, PartOf part_of, Value* args,
                     Value* kwargs, int num_members)
    : Counted(memory),
      function_(function),
      part_of_(part_of),
      args_(ValueRef::share(args)),
      kwargs_(ValueRef::share(kwargs)),
      results_(static_cast<std::size_t>(num_members), &memory) {}

Body ValuesRun::body() noexcept {
  return {.call = call_from, .context = this, .about_to_start = about_to_start};
}

std::pmr::vector<Value*> ValuesRun::results() const {
  std::pmr::vector<Value*> given(&memory());
  given.reserve(results_.size());
  for (const ValueRef& result : results_) given.push_back(result.get());
  return given;
}

// One reference for each member.
void ValuesRun::about_to_start(void* context) {
  auto* run = static_cast<ValuesRun*>(context);
  for (std::size_t i = 0; i < run->results_.size(); ++i) run->retain();
}

dist_status ValuesRun::call_from(Replica& member, const Body& self) {
  const auto run = Ref<ValuesRun>::adopt(static_cast<ValuesRun*>(self.context));
  try {
    return run->call(member).code();
  } catch (const std::bad_alloc&) {
    return out_of_memory().code();
  }
}

Status ValuesRun::call(Replica& member) {
  ValueRef args;
  ValueRef kwargs;
  DIST_TRY(part_of_(memory(), args_.get(), member.rank(), &args));
  DIST_TRY(part_of_(memory(), kwargs_.get(), member.rank(), &kwargs));
  Value* result = nullptr;
  const dist_status status = function_.call(function_, member, args.get(), kwargs.get(), &result);
  results_[static_cast<std::size_t>(member.rank())] = ValueRef::adopt(result);
  return Status(status);
}

Status read_arguments(Memory& memory, Value* args, const Value* kwargs, ValueRef* out_args) {
  if (args == nullptr || args->is_sequence()) {
    *out_args = ValueRef::share(args);
  } else {
    DIST_TRY(Value::create(memory, DIST_VALUE_TUPLE, {&args, 1}, out_args));
  }
  if (kwargs != nullptr && kwargs->kind() != DIST_VALUE_DICT) {
    return invalid_argument("`kwargs` is %s, but must be a dictionary of named arguments, or `NULL`",
                            Value::kind_name(kwargs->kind()));
  }
  return kOk;
}

Status run_values(ReplicaPool& pool, Memory& memory, const ValuesFunction& function, Value* args,
                  Value* kwargs, const RunLimits& limits, ValueRef* out) {
  ValueRef list;
  DIST_TRY(read_arguments(memory, args, kwargs, &list));
  const auto part_of = [](Memory& on, Value* value, int rank, ValueRef* own) {
    return component_of(on, value, LocalReplica{rank}, own);
  };
  const auto run =
      make_counted<ValuesRun>(memory, function, part_of, list.get(), kwargs, pool.num_replicas());
  DIST_TRY(pool.run(run->body(), limits));
  const std::pmr::vector<Value*> results = run->results();
  return merge(memory, results, "result", out);
}

}  // namespace dist
