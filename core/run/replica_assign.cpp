// SPDX-License-Identifier: Apache-2.0
#include "core/run/replica_assign.hpp"

#include "core/cross_replica/assign.hpp"
#include "core/run/merge_call.hpp"
#include "core/run/replica_pool.hpp"
#include "core/value/slices.hpp"

namespace dist {
namespace {

// Any strategy may read a variable of a strategy with one replica. Several replicas must not write to its
// only copy at the same time.
Status check_use(const Replica& replica, const Variable& variable, bool writes) noexcept {
  if (&variable.memory() == &replica.pool().memory()) return kOk;
  if (variable.plain() && (!writes || replica.replicas().local() == 1)) return kOk;
  return failed_precondition(
      "variable \"%s\" belongs to another strategy. Inside replica %d's run, use variables of the replica's "
      "own strategy.",
      variable.name(), replica.name().number());
}

// Whether an assignment affects only the replica that makes it: it has a copy of its own, or there is no
// other replica.
Status find_own(const Replica& replica, const Variable& variable, bool* out_own) noexcept {
  DIST_TRY(check_use(replica, variable, true));
  const bool none = variable.aggregation() == DIST_AGGREGATION_NONE;
  if (none && variable.central()) {
    return invalid_argument(
        "variable \"%s\" has one copy for all replicas and aggregation NONE, so the values of the replicas "
        "cannot be combined. Create it with aggregation SUM, MEAN or ONLY_FIRST_REPLICA.",
        variable.name());
  }
  *out_own = none || variable.sync_on_read() || replica.replicas().global() == 1;
  return kOk;
}

using Apply = Status (*)(const CrossReplica& context, Variable& variable, int32_t how, Value& merged);

struct Merging {
  const CrossReplica& context;
  Variable& variable;
  int32_t how;
  Apply apply;
};

dist_status apply_merged(Value& args, Value*, Value**, void* context) {
  const auto& merging = *static_cast<const Merging*>(context);
  return merging.apply(merging.context, merging.variable, merging.how, *args.items()[0]).code();
}

// Reports name the variable if the host gave no tag.
Member named(Member member, const Variable& variable) noexcept {
  if (member.tag == nullptr) member.tag = variable.name();
  return member;
}

constexpr int32_t kScatter = 32;  // distinguishes scatters from assignments

// All replicas meet, and one applies the values of all. It detects replicas that pass another variable or
// another operation.
Status meet(Replica& replica, const Member& member, Merging merging, int32_t what, Value& value) {
  Value* const items[] = {&value};
  ValueRef args;
  DIST_TRY(Value::create(*merging.context.memory, DIST_VALUE_LIST, items, &args));
  ValueRef nothing;
  const MergeFor called = what > kScatter ? MergeFor::kScatter : MergeFor::kAssign;
  const auto numerics = static_cast<uint32_t>(merging.context.numerics);
  const uint64_t detail = mix(mix_text(0, merging.variable.name()),
                              static_cast<uint64_t>(what) | static_cast<uint64_t>(numerics) << 32);
  return merge_call(replica, *merging.context.memory,
                    {apply_merged, &merging, &merging.variable, called, detail}, {args.get()},
                    named(member, merging.variable).tag, member.timeout_ns, &nothing);
}

}  // namespace

Status replica_assign(Replica& replica, const CrossReplica& context, const Member& member, Variable& variable,
                      int32_t how, const dist_tensor& value) {
  bool own = false;
  DIST_TRY(find_own(replica, variable, &own));
  DIST_TRY(variable.check_assign(how, value, "value"));
  if (own) {
    variable.assign(how, replica.local(), value);
    return kOk;
  }
  if (variable.central()) {
    ValueRef wrapped;
    DIST_TRY(Value::wrap_tensor(*context.memory, value, nullptr, nullptr, &wrapped));
    return meet(replica, member, {context, variable, how, merged_assign}, how, *wrapped);
  }
  // Reduced in a separate, dense tensor, because an addition still needs the copy and the value may have any
  // strides.
  ValueRef reduced;
  DIST_TRY(Value::copy_tensor(variable.memory(), value, &reduced));
  const dist_tensor dense = reduced->tensor();
  dist_tensor result = dense;
  const Member all = named(member, variable);
  switch (variable.aggregation()) {
    case DIST_AGGREGATION_SUM:
      DIST_TRY(all_reduce(all, DIST_REDUCE_SUM, context.numerics, &dense, &result, 1));
      break;
    case DIST_AGGREGATION_MEAN:
      DIST_TRY(all_reduce(all, DIST_REDUCE_MEAN, context.numerics, &dense, &result, 1));
      break;
    // Within this worker, like TensorFlow: workers may differ.
    default: DIST_TRY(broadcast(all.local(), 0, &dense, &result, 1)); break;
  }
  variable.assign(how, replica.local(), result);
  return kOk;
}

Status replica_assign_value(Replica& replica, const CrossReplica& context, const Member& member,
                            Variable& variable, int32_t how, Value& value) {
  bool own = false;
  DIST_TRY(find_own(replica, variable, &own));
  ValueRef given;
  DIST_TRY(component_of(*context.memory, &value, replica.local(), &given));
  if (!given->has_tensor()) {
    return invalid_argument("value: %s cannot be assigned to variable \"%s\". Pass a tensor.",
                            Value::kind_name(given->kind()), variable.name());
  }
  if (given->variable() != nullptr) DIST_TRY(check_use(replica, *given->variable(), false));
  const dist_tensor tensor =
      given->variable() != nullptr ? given->variable()->component(replica.local()) : given->tensor();
  DIST_TRY(variable.check_assign(how, tensor, "value"));
  if (!own) return meet(replica, member, {context, variable, how, merged_assign}, how, *given);
  variable.assign(how, replica.local(), tensor);
  return kOk;
}

Status replica_scatter(Replica& replica, const CrossReplica& context, const Member& member,
                       Variable& variable, int32_t how, Value& slices) {
  DIST_TRY(check_use(replica, variable, true));
  DIST_TRY(check_scatter(variable, how));
  ValueRef given;
  DIST_TRY(component_of(*context.memory, &slices, replica.local(), &given));
  Slices rows;
  DIST_TRY(Slices::of(variable, how, *given, &rows));
  const bool own = replica.replicas().global() == 1 ||
                   (variable.mirrored() && variable.aggregation() == DIST_AGGREGATION_NONE);
  if (!own) return meet(replica, member, {context, variable, how, merged_scatter}, kScatter + how, *given);
  rows.apply(how, variable, replica.local());
  return kOk;
}

Status replica_read(const Replica& replica, Variable& variable, ValueRef* out) {
  DIST_TRY(check_use(replica, variable, false));
  return Value::copy_tensor(replica.pool().memory(), variable.component(replica.local()), out);
}

}  // namespace dist
