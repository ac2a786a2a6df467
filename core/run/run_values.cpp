// SPDX-License-Identifier: Apache-2.0
#include "core/run/run_values.hpp"

#include <new>

namespace dist {
namespace {

// What the replicas of one run share. Counted: a replica that is late past the run's deadline still uses it.
class ValuesRun final : public Counted {
 public:
  ValuesRun(Memory& memory, const ValuesFunction& function, Value* args, Value* kwargs, int num_replicas)
      : Counted(memory),
        function_(function),
        args_(ValueRef::share(args)),
        kwargs_(ValueRef::share(kwargs)),
        num_replicas_(num_replicas),
        results_(static_cast<std::size_t>(num_replicas), &memory) {}

  std::span<const ValueRef> results() const noexcept { return results_; }

  // One reference for each replica.
  static void about_to_start(void* context) {
    auto* run = static_cast<ValuesRun*>(context);
    for (int i = 0; i < run->num_replicas_; ++i) run->retain();
  }
  static dist_status call(Replica& replica, const Body& self) {
    const auto run = Ref<ValuesRun>::adopt(static_cast<ValuesRun*>(self.context));
    try {
      return run->call(replica).code();
    } catch (const std::bad_alloc&) {
      return out_of_memory().code();
    }
  }

 private:
  Status call(Replica& replica) {
    ValueRef args;
    ValueRef kwargs;
    DIST_TRY(component_of(memory(), args_.get(), replica.id(), &args));
    DIST_TRY(component_of(memory(), kwargs_.get(), replica.id(), &kwargs));
    Value* result = nullptr;
    const dist_status status = function_.call(function_, replica, args.get(), kwargs.get(), &result);
    results_[static_cast<std::size_t>(replica.id())] = ValueRef::adopt(result);
    return Status(status);
  }

  const ValuesFunction function_;
  const ValueRef args_;
  const ValueRef kwargs_;
  const int num_replicas_;
  std::pmr::vector<ValueRef> results_;
};

}  // namespace

Status check_arguments(const Value* args, const Value* kwargs) noexcept {
  if (args != nullptr && !args->is_sequence()) {
    return invalid_argument("args is %s; a run takes a list or tuple of positional arguments, or NULL",
                            Value::kind_name(args->kind()));
  }
  if (kwargs != nullptr && kwargs->kind() != DIST_VALUE_DICT) {
    return invalid_argument("kwargs is %s; a run takes a dictionary of named arguments, or NULL",
                            Value::kind_name(kwargs->kind()));
  }
  return kOk;
}

Status run_values(ReplicaPool& pool, Memory& memory, const ValuesFunction& function, Value* args,
                  Value* kwargs, const RunLimits& limits, ValueRef* out) {
  DIST_TRY(check_arguments(args, kwargs));
  const auto run = make_counted<ValuesRun>(memory, function, args, kwargs, pool.num_replicas());
  const Body body{.call = ValuesRun::call, .context = run.get(), .about_to_start = ValuesRun::about_to_start};
  DIST_TRY(pool.run(body, limits));
  std::pmr::vector<Value*> results(&memory);
  results.reserve(run->results().size());
  for (const ValueRef& result : run->results()) results.push_back(result.get());
  return merge(memory, results, "result", out);
}

}  // namespace dist
