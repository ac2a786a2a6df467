// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/assign.hpp"

#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/on_stack.hpp"
#include "core/cross_replica/copies.hpp"
#include "core/cross_replica/fold.hpp"
#include "core/cross_replica/gather.hpp"
#include "core/kernel/divide.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/reduce.hpp"
#include "core/value/slices.hpp"

namespace dist {
namespace {

// Whether any element of `tensor` is in [begin, begin + bytes).
bool touches(const dist_tensor& tensor, const void* begin, std::size_t bytes) noexcept {
  auto low = reinterpret_cast<intptr_t>(tensor.data);
  const auto size = static_cast<int64_t>(dtype_size(tensor.dtype));
  auto high = low + size;
  int64_t dense = size;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] == 0) return false;
    const int64_t reach =
        (tensor.shape[i] - 1) * (tensor.strides != nullptr ? tensor.strides[i] * size : dense);
    dense *= tensor.shape[i];
    (reach < 0 ? low : high) += static_cast<intptr_t>(reach);
  }
  const auto other = reinterpret_cast<intptr_t>(begin);
  return low < other + static_cast<intptr_t>(bytes) && other < high;
}

// A view of replica r's component of a value.
Status view_of(const CrossReplica& context, const Variable& variable, Value& value, LocalReplica r,
               dist_tensor* out) {
  if (value.distributed() && static_cast<int32_t>(value.items().size()) != context.replicas.local()) {
    return invalid_argument(
        "`value` is %s of %zu components, but the strategy has %d replicas: the value was created for "
        "another strategy",
        Value::kind_name(value.kind()), value.items().size(), context.replicas.local());
  }
  const Value& own = value.distributed() ? *value.items()[index(r)] : value;
  if (!own.has_tensor()) {
    return invalid_argument(
        "value: %s cannot be assigned to variable \"%s\". Pass a tensor, or one for each replica.",
        Value::kind_name(own.kind()), variable.name());
  }
  if (own.variable() != nullptr) DIST_TRY(check_owner(context, *own.variable()));
  *out = own.variable() != nullptr ? own.variable()->component(r) : own.tensor();
  return kOk;
}

// Like view_of(), but copies the component to `kept` if writing to the variable's copies would change it.
Status source_of(const CrossReplica& context, const Variable& variable, Value& value, LocalReplica r,
                 ValueRef* kept, dist_tensor* out) {
  DIST_TRY(view_of(context, variable, value, r, out));
  for (int32_t copy = 0; copy < variable.num_copies(); ++copy) {
    const void* const data = variable.component(LocalReplica{copy}).data;
    const bool itself = LocalReplica{copy} == r && out->data == data && out->strides == nullptr;
    if (itself || !touches(*out, data, variable.bytes())) continue;
    DIST_TRY(Value::copy_tensor(*context.memory, *out, kept));
    *out = (*kept)->tensor();
    break;
  }
  return kOk;
}

// Assigns to every copy; each copy gets its own component.
Status assign_copies(const CrossReplica& context, Variable& variable, int32_t how, Value& value) {
  const auto n = static_cast<std::size_t>(variable.num_copies());
  std::pmr::vector<ValueRef> kept(n, context.memory);
  std::pmr::vector<dist_tensor> sources(n, context.memory);
  for (std::size_t r = 0; r < n; ++r) {
    DIST_TRY(source_of(context, variable, value, LocalReplica(r), &kept[r], &sources[r]));
    DIST_TRY(variable.check_assign(how, sources[r], "value"));
  }
  return for_each_copy(context, variable,
                       [&](LocalReplica r) { variable.assign(how, r, sources[index(r)]); });
}

Status no_aggregation(const Variable& variable) noexcept {
  return invalid_argument(
      "variable \"%s\" is synchronized on reading with aggregation NONE, so one value cannot be divided "
      "among its copies. Create it with another aggregation, or use the copies "
      "(`dist_strategy_local_results()`, `dist_update()`).",
      variable.name());
}

// Assigns the parts of a sum, one to each copy. The value may be stored in one of the copies.
Status assign_parts(const CrossReplica& context, Variable& variable, const dist_tensor& value) {
  DIST_TRY(variable.check_assign(DIST_ASSIGN, value, "value"));
  DIST_TRY(check_op(DIST_REDUCE_SUM, variable.dtype()));
  ValueRef whole;
  DIST_TRY(Value::copy_tensor(*context.memory, value, &whole));
  variable.assign(DIST_ASSIGN, LocalReplica{0}, whole->tensor());
  share_sum(context.replicas, variable);
  return kOk;
}

Status assign_on_read(const CrossReplica& context, Variable& variable, int32_t how, Value& value) {
  if (variable.aggregation() == DIST_AGGREGATION_NONE) return no_aggregation(variable);
  if (value.kind() == DIST_VALUE_PER_REPLICA) {
    return invalid_argument(
        "variable \"%s\" is synchronized on reading, so outside a run it takes one value, not %s. Use "
        "`dist_update()` to write to each copy.",
        variable.name(), Value::kind_name(value.kind()));
  }
  if (variable.aggregation() != DIST_AGGREGATION_SUM) return assign_copies(context, variable, how, value);
  if (how != DIST_ASSIGN) {
    return invalid_argument(
        "variable \"%s\" is the sum of its copies, so outside a run it can be assigned but not added to. "
        "Assign its value (`dist_variable_read()`) plus the addend, or add inside the replicas.",
        variable.name());
  }
  dist_tensor one{};
  DIST_TRY(view_of(context, variable, value, LocalReplica{0}, &one));
  return assign_parts(context, variable, one);
}

// Folds the components of replicas 0, 1, ....
Status fold(const CrossReplica& context, dist_reduce_op op, std::span<const dist_tensor> tensors,
            ValueRef* out) {
  DIST_TRY(check_numerics_of(context.numerics, tensors[0].dtype));
  FoldPlan plan(*context.memory, context.numerics, context.workers);
  DIST_TRY(plan.add(op, tensors, out));
  return plan.run(*context.arena);
}

dist_reduce_op op_of(const Variable& variable) noexcept {
  return variable.aggregation() == DIST_AGGREGATION_SUM ? DIST_REDUCE_SUM : DIST_REDUCE_MEAN;
}

// Reduces `merged` and assigns the result to every copy.
Status assign_reduced(const CrossReplica& context, Variable& variable, int32_t how, Value& merged) {
  const dist_reduce_op op = op_of(variable);
  const dist_dtype dtype = variable.dtype();
  DIST_TRY(check_op(op, dtype));
  if (op == DIST_REDUCE_MEAN && dtype_of_mean(dtype) != dtype) {
    return invalid_argument(
        "variable \"%s\": the MEAN of %s is %s, which the variable cannot store. Use SUM or "
        "ONLY_FIRST_REPLICA.",
        variable.name(), dtype_name(dtype), dtype_name(dtype_of_mean(dtype)));
  }
  std::pmr::vector<dist_tensor> parts(static_cast<std::size_t>(context.replicas.local()), context.memory);
  for (std::size_t r = 0; r < parts.size(); ++r) {
    DIST_TRY(view_of(context, variable, merged, LocalReplica(r), &parts[r]));
    DIST_TRY(variable.check_assign(how, parts[r], "value"));
  }
  ValueRef reduced;
  DIST_TRY(fold(context, op, parts, &reduced));
  return assign_copies(context, variable, how, *reduced);
}

Status sum_of_common(const Variable& variable) noexcept {
  return invalid_argument(
      "variable \"%s\" sums the values of the replicas, but all of them passed the same object. Pass a value "
      "of its own on every replica, or use MEAN.",
      variable.name());
}

// Concatenates the rows of all replicas of all workers.
Status join_rows(const CrossReplica& context, std::pmr::vector<Slices>* rows) {
  ValueRef joined[2];
  for (std::size_t part = 0; part < 2; ++part) {
    std::pmr::vector<dist_tensor> tensors(context.memory);
    for (const Slices& each : *rows)
      tensors.push_back((part == 0 ? each.values() : each.indices())->tensor());
    DIST_TRY(join(context, tensors, 0, Path{part == 0 ? "values" : "indices"}, &joined[part]));
  }
  rows->resize(1);
  rows->front().become(std::move(joined[0]), std::move(joined[1]));
  return kOk;
}

// Whether all replicas passed the same object. With several workers, an object that a worker's only replica
// passed counts as that replica's own.
bool is_common(const CrossReplica& context, const Value& merged) noexcept {
  return merged.kind() != DIST_VALUE_PER_REPLICA &&
         (context.workers == nullptr || context.replicas.local() > 1);
}

// Applies `slices[k]` in order to every copy.
Status apply_all(const CrossReplica& context, Variable& variable, int32_t how,
                 std::span<const Slices> slices) {
  return for_each_copy(context, variable, [&](LocalReplica r) {
    for (const Slices& rows : slices) rows.apply(how, variable, r);
  });
}

}  // namespace

void share_sum(const ReplicaCount& replicas, Variable& variable) noexcept {
  const int32_t n = variable.num_copies();
  const int32_t all = replicas.global();
  auto* const whole = static_cast<std::byte*>(variable.first_copy().data);
  const auto count = static_cast<std::size_t>(variable.elements());
  auto* const copies = DIST_ON_STACK(std::byte*, n);
  for (int32_t r = 0; r < n; ++r)
    copies[r] = static_cast<std::byte*>(variable.component(LocalReplica{r}).data);
  if (dtype_is_integer(variable.dtype())) {
    for (int32_t r = n - 1; r >= 0; --r) {
      share_integers(variable.dtype(), whole, number(replicas.global_of(LocalReplica{r})), all, copies[r],
                     count);
    }
    return;
  }
  const FpEnvironment environment;
  const std::byte* const sources[] = {whole};
  reduce_kernel(variable.dtype(), DIST_REDUCE_MEAN)(
      {sources, copies, 1, static_cast<std::size_t>(n), count, static_cast<double>(all), false});
}

Status assign(const CrossReplica& context, Variable& variable, int32_t how, Value& value) {
  DIST_TRY(check_owner(context, variable));
  return variable.sync_on_read() ? assign_on_read(context, variable, how, value)
                                 : assign_copies(context, variable, how, value);
}

Status read(const CrossReplica& context, Variable& variable, ValueRef* out) {
  DIST_TRY(check_owner(context, variable));
  if (!variable.sync_on_read() || variable.aggregation() == DIST_AGGREGATION_ONLY_FIRST_REPLICA)
    return Value::copy_tensor(*context.memory, variable.first_copy(), out);
  if (variable.aggregation() == DIST_AGGREGATION_NONE) return no_aggregation(variable);
  if (context.replicas.global() == 1) return Value::copy_tensor(*context.memory, variable.first_copy(), out);
  DIST_TRY(check_op(op_of(variable), variable.dtype()));
  std::pmr::vector<dist_tensor> copies(context.memory);
  for (int32_t r = 0; r < variable.num_copies(); ++r) copies.push_back(variable.component(LocalReplica{r}));
  ValueRef result;
  DIST_TRY(fold(context, op_of(variable), copies, &result));
  *out = std::move(result);
  return kOk;
}

Status merged_assign(const CrossReplica& context, Variable& variable, int32_t how, Value& merged) {
  const bool common = is_common(context, merged);
  if (variable.aggregation() == DIST_AGGREGATION_ONLY_FIRST_REPLICA || context.replicas.global() == 1) {
    dist_tensor view{};
    ValueRef first;
    DIST_TRY(view_of(context, variable, merged, LocalReplica{0}, &view));
    DIST_TRY(Value::wrap_tensor(*context.memory, view, nullptr, nullptr, &first));
    return assign_copies(context, variable, how, *first);
  }
  if (common) {
    return variable.aggregation() == DIST_AGGREGATION_SUM ? sum_of_common(variable)
                                                          : assign_copies(context, variable, how, merged);
  }
  return assign_reduced(context, variable, how, merged);
}

Status scatter(const CrossReplica& context, Variable& variable, int32_t how, Value& slices) {
  DIST_TRY(check_owner(context, variable));
  DIST_TRY(check_scatter(variable, how));
  if (slices.distributed() && static_cast<int32_t>(slices.items().size()) != context.replicas.local()) {
    return invalid_argument(
        "`slices` is %s of %zu components, but the strategy has %d replicas: the slices were created for "
        "another strategy",
        Value::kind_name(slices.kind()), slices.items().size(), context.replicas.local());
  }
  std::pmr::vector<Slices> rows(static_cast<std::size_t>(variable.num_copies()), context.memory);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Value& own = slices.distributed() ? *slices.items()[r] : slices;
    DIST_TRY(Slices::of(variable, how, own, &rows[r]));
  }
  return for_each_copy(context, variable, [&](LocalReplica r) { rows[index(r)].apply(how, variable, r); });
}

Status merged_scatter(const CrossReplica& context, Variable& variable, int32_t how, Value& merged) {
  const bool common = is_common(context, merged);
  const auto n = static_cast<std::size_t>(context.replicas.local());
  // Central storage has only one copy, so the rows of every replica are applied to it, in the order of
  // replicas.
  const bool first = variable.aggregation() == DIST_AGGREGATION_ONLY_FIRST_REPLICA && !variable.central();
  const bool mean = variable.aggregation() == DIST_AGGREGATION_MEAN && !variable.central();
  if (common && n > 1 && variable.aggregation() == DIST_AGGREGATION_SUM && !variable.central())
    return sum_of_common(variable);
  const bool once = first || (common && !variable.central());
  std::pmr::vector<Slices> rows(once ? 1 : n, context.memory);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Value& own = common ? merged : *merged.items()[r];
    DIST_TRY(Slices::of(variable, how, own, &rows[r]));
    if (mean && !common) DIST_TRY(rows[r].divide(context.replicas.global()));
  }
  if (context.workers != nullptr && !once) DIST_TRY(join_rows(context, &rows));
  return apply_all(context, variable, how, rows);
}

}  // namespace dist
