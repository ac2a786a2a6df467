// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/update.hpp"

#include <memory_resource>
#include <mutex>
#include <span>
#include <vector>

#include "core/cross_replica/copies.hpp"
#include "core/run/current.hpp"
#include "core/run/merge_call.hpp"
#include "core/strategy/between_runs.hpp"

namespace dist {
namespace {

Status check_arguments(const UpdateCall& update) noexcept {
  if (update.args != nullptr && !update.args->is_sequence()) {
    return invalid_argument("`args` is %s, but must be a list or tuple of arguments, or `NULL`",
                            Value::kind_name(update.args->kind()));
  }
  if (update.kwargs != nullptr && update.kwargs->kind() != DIST_VALUE_DICT) {
    return invalid_argument("`kwargs` is %s, but must be a dictionary of named arguments, or `NULL`",
                            Value::kind_name(update.kwargs->kind()));
  }
  return kOk;
}

// A mirrored strategy updates only variables with a copy for each of its replicas.
Status check_variable(Strategy& strategy, const Variable& variable) noexcept {
  if (strategy.layout() == DIST_STRATEGY_MIRRORED && !variable.mirrored()) {
    return invalid_argument(
        "variable \"%s\" was created outside this strategy, which has no copies of it. Create it with the "
        "strategy.",
        variable.name());
  }
  return check_owner(strategy.cross_replica(), variable);
}

// Puts the thread into the strategy's scope, in cross-replica context. The default strategy has no scope: its
// functions run as if outside.
class InScope {
 public:
  explicit InScope(const Strategy& strategy) noexcept : before_(current()) {
    Current& here = current();
    if (strategy.kind() == DIST_STRATEGY_DEFAULT || here.scope == &strategy) return;
    here.scope = &strategy;
    here.entered = 1;
  }
  ~InScope() { current() = before_; }
  InScope(const InScope&) = delete;
  InScope& operator=(const InScope&) = delete;

 private:
  const Current before_;
};

// One copy's components of the arguments, and what its call returned.
struct CopyCall {
  ValueRef args;
  ValueRef kwargs;
  ValueRef result;
};

Status call_one(Strategy& strategy, const UpdateCall& update, LocalReplica copy, CopyCall& call) {
  const auto devices = strategy.devices().parameters();
  const auto index = dist::index(copy);
  dist_tensor view{};
  if (update.variable != nullptr) view = update.variable->component(copy);
  const UpdatePlace place{
      strategy.layout() == DIST_STRATEGY_MIRRORED ? strategy.replicas().global_of(copy) : kNoReplica,
      index < devices.size() ? devices[index].c_str() : "", update.variable != nullptr ? &view : nullptr};
  const uint64_t before = failures_on_this_thread();
  Value* result = nullptr;
  const InScope scope(strategy);
  const dist_status status =
      update.fn.call(place, call.args.get(), call.kwargs.get(), &result, update.fn.context);
  call.result = ValueRef::adopt(result);
  const Status ended = host_status(status, before, "update function");
  if (!ended.ok() && last_error().culprit.replica == kNoReplica) last_error().culprit = {place.replica};
  return ended;
}

// The failure of the lowest copy, transferred from the thread on which it occurred.
class FirstFailure {
 public:
  void set(std::size_t copy) noexcept {
    const std::scoped_lock lock(mutex_);
    if (copy >= copy_) return;
    copy_ = copy;
    record_ = last_error();
  }
  Status status() const noexcept { return copy_ == SIZE_MAX ? kOk : fail(record_); }

 private:
  std::mutex mutex_;
  std::size_t copy_ = SIZE_MAX;
  ErrorRecord record_;
};

Status call_all(Strategy& strategy, const UpdateCall& update, std::span<CopyCall> calls) {
  // Nothing may throw on oneTBB's threads.
  for (std::size_t copy = 0; copy < calls.size(); ++copy) {
    DIST_TRY(component_of(strategy.memory(), update.args, LocalReplica(copy), &calls[copy].args));
    DIST_TRY(component_of(strategy.memory(), update.kwargs, LocalReplica(copy), &calls[copy].kwargs));
  }
  if (!update.parallel || update.variable == nullptr) {
    for (std::size_t copy = 0; copy < calls.size(); ++copy)
      DIST_TRY(call_one(strategy, update, LocalReplica(copy), calls[copy]));
    return kOk;
  }
  FirstFailure failure;
  const ReplicaPool* const turn = current().turn;
  DIST_TRY(for_each_copy(strategy.cross_replica(), *update.variable, [&](LocalReplica copy) {
    const InTurnOf in(turn);
    if (!call_one(strategy, update, copy, calls[index(copy)]).ok()) failure.set(index(copy));
  }));
  return failure.status();
}

// Converts the merged results into the result of an update.
class Regrouping {
 public:
  Regrouping(Memory& memory, bool ungrouped) noexcept : memory_(memory), ungrouped_(ungrouped) {}

  Status regroup(Value& value, ValueRef* out) {
    if (value.is_nest()) return regroup_items(value, out);
    if (ungrouped_) return local_results(value, out);
    if (value.kind() == DIST_VALUE_PER_REPLICA) return mirror(value, out);
    *out = ValueRef::share(&value);
    return kOk;
  }

 private:
  Status regroup_items(Value& value, ValueRef* out) {
    const auto items = value.items();
    std::pmr::vector<ValueRef> regrouped(items.size(), &memory_);
    std::pmr::vector<Value*> pointers(items.size(), &memory_);
    for (std::size_t i = 0; i < items.size(); ++i) {
      DIST_TRY(regroup(*items[i], &regrouped[i]));
      pointers[i] = regrouped[i].get();
    }
    return Value::create_like(memory_, value, pointers, out);
  }

  Status local_results(Value& value, ValueRef* out) {
    Value* const alone[] = {&value};
    if (!value.distributed()) return Value::create(memory_, DIST_VALUE_TUPLE, alone, out);
    std::pmr::vector<Value*> items(&memory_);
    for (const ValueRef& item : value.items()) items.push_back(item.get());
    return Value::create(memory_, DIST_VALUE_TUPLE, items, out);
  }

  // A copy of the variable in the result is replaced by its value at the end of the update.
  Status mirror(Value& value, ValueRef* out) {
    std::pmr::vector<ValueRef> own(&memory_);
    std::pmr::vector<Value*> components(&memory_);
    for (const ValueRef& item : value.items()) {
      own.push_back(item);
      if (item->copy_of() != nullptr) DIST_TRY(Value::copy_tensor(memory_, item->tensor(), &own.back()));
      components.push_back(own.back().get());
    }
    return Value::create(memory_, DIST_VALUE_MIRRORED, components, out);
  }

  Memory& memory_;
  const bool ungrouped_;
};

struct Merging {
  Strategy& strategy;
  const UpdateCall& update;
};

// Replica 0 runs the function with the merged arguments of all replicas.
dist_status update_merged(Value& args, Value* kwargs, Value** out_result, void* context) {
  const auto& merging = *static_cast<const Merging*>(context);
  UpdateCall update = merging.update;
  if (update.args != nullptr) update.args = &args;
  update.kwargs = kwargs;
  ValueRef result;
  const Status status = dist::update(merging.strategy, update, &result);
  *out_result = result.take();
  return status.code();
}

}  // namespace

Status update(Strategy& strategy, const UpdateCall& update, ValueRef* out) {
  DIST_TRY(check_arguments(update));
  if (update.variable != nullptr) DIST_TRY(check_variable(strategy, *update.variable));
  const std::size_t devices = strategy.devices().parameters().size();
  const std::size_t n = update.variable != nullptr ? static_cast<std::size_t>(update.variable->num_copies())
                        : devices != 0             ? devices
                                                   : 1;
  Memory& memory = strategy.memory();
  std::pmr::vector<CopyCall> calls(n, &memory);
  DIST_TRY(call_all(strategy, update, calls));
  std::pmr::vector<Value*> pointers(&memory);
  for (const CopyCall& call : calls) pointers.push_back(call.result.get());
  ValueRef merged;
  DIST_TRY(merge(memory, pointers, "result", &merged));
  if (!merged) {
    *out = ValueRef();
    return kOk;
  }
  return Regrouping(memory, update.ungrouped).regroup(*merged, out);
}

Status replica_update(Replica& replica, Strategy& strategy, const UpdateCall& update, ValueRef* out) {
  DIST_TRY(check_arguments(update));
  Memory& memory = strategy.memory();
  Merging merging{strategy, update};
  const char* const tag = update.variable != nullptr ? update.variable->name() : "update";
  return merge_call(replica, memory, {update_merged, &merging, update.fn.identity, MergeFor::kUpdate},
                    {update.args, update.kwargs}, tag, 0, out);
}

}  // namespace dist
