// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/reducer.hpp"

#include <utility>

#include "core/base/tensor.hpp"
#include "core/cross_replica/axis_reduce.hpp"
#include "core/cross_replica/cross_device.hpp"
#include "core/cross_replica/host_calls.hpp"
#include "core/cross_replica/local_results.hpp"
#include "core/cross_replica/slices.hpp"
#include "core/value/nest.hpp"
#include "core/value/variable.hpp"

namespace dist {
namespace {

// A replica's view of a tensor or variable.
dist_tensor view(const Value& value, LocalReplica replica) noexcept {
  return value.variable() != nullptr ? value.variable()->component(replica) : value.tensor();
}

}  // namespace

Reducer::Reducer(const CrossReplica& context, ReduceRules rules, dist_reduce_op op)
    : context_(context),
      rules_(rules),
      op_(op),
      plan_(*context.memory, context.numerics, context.workers),
      components_(context.memory),
      tensors_(context.memory) {}

Status Reducer::set_destination(const Destination& destination) noexcept {
  return resolve(context_, destination, &place_);
}

Status Reducer::add(Value& value, const Path& path, ValueRef* out) {
  if (value.is_nest()) return add_items(value, path, out);
  if (value.distributed() && to_one_tensor()) DIST_TRY(check_components(value, path));
  if (value.kind() == DIST_VALUE_PER_REPLICA || (value.distributed() && !axes_.empty()))
    return add_components(value, path, out);
  const Variable* const variable = value.variable();
  if (variable != nullptr) DIST_TRY(check_copies(*variable, path));
  if (!axes_.empty() || (variable != nullptr && variable->sync_on_read()))
    return add_copies(value, path, out);
  if (context_.workers != nullptr && !value.distributed() && variable == nullptr)
    return add_of_workers(value, path, out);
  return add_equal(value, path, out);
}

Status Reducer::run() { return plan_.run(*context_.arena); }

Status Reducer::add_items(Value& value, const Path& path, ValueRef* out) {
  if (!axes_.empty()) return no_axes_of(value, path);
  return map_items(
      *context_.memory, value, path,
      [this](Value& item, const Path& here, ValueRef* made) { return add(item, here, made); }, out);
}

Status Reducer::no_axes_of(const Value& nest, const Path& path) const noexcept {
  return invalid_argument(
      "%s is %s, but only a tensor has axes. Reduce the items one by one, or reduce without axes.",
      PathText(path).c_str(), Value::kind_name(nest.kind()));
}

Status Reducer::check_components(const Value& value, const Path& path) const noexcept {
  if (value.items().size() == static_cast<std::size_t>(num_local())) return kOk;
  return invalid_argument(
      "%s is %s of %zu components, but the strategy has %d replicas: it was created for another strategy",
      PathText(path).c_str(), Value::kind_name(value.kind()), value.items().size(), num_local());
}

// Requires one copy for each replica, or a single copy if the variable is not reduced.
Status Reducer::check_copies(const Variable& variable, const Path& path) const noexcept {
  const bool folded = variable.sync_on_read();
  if (variable.num_copies() == num_local()) return kOk;
  if (to_one_tensor() ? variable.num_copies() == 1 : !folded) return kOk;
  return invalid_argument(
      "%s: variable \"%s\" has %d copies, but the strategy has %d replicas: it was created for another "
      "strategy",
      PathText(path).c_str(), variable.name(), variable.num_copies(), num_local());
}

// For a distributed value: folds its components, which may be nests or indexed slices. A single component is
// returned unchanged.
Status Reducer::add_components(Value& value, const Path& path, ValueRef* out) {
  DIST_TRY(check_components(value, path));
  if (axes_.empty() && context_.replicas.global() == 1) {
    *out = value.items()[0];
    return kOk;
  }
  components_.clear();
  bool nests = false;
  for (const ValueRef& component : value.items()) {
    components_.push_back(component.get());
    nests = nests || component->is_nest();
  }
  if (nests) {
    DIST_TRY(check_alike(*context_.memory, components_, path));
    if (!axes_.empty()) return no_axes_of(*components_[0], path);
  }
  return add_column(components_, path, out);
}

// Nests become nests of reduced leaves.
Status Reducer::add_column(std::span<Value* const> components, const Path& path, ValueRef* out) {
  if (components[0]->is_nest()) {
    return map_columns(
        *context_.memory, components, path,
        [this](std::span<Value* const> column, const Path& here, ValueRef* made) {
          return add_column(column, here, made);
        },
        out);
  }
  if (axes_.empty() && components[0]->kind() == DIST_VALUE_INDEXED_SLICES)
    return add_slices(components, path, out);
  return add_tensors(components, path, out);
}

Status Reducer::add_slices(std::span<Value* const> components, const Path& path, ValueRef* out) {
  ValueRef joined;
  DIST_TRY(join_slices(context_, plan_, op_, components, path, &joined));
  return put_there(std::move(joined), out);
}

// For a value that all replicas share. If it is a variable, each replica has its own copy.
Status Reducer::add_copies(Value& value, const Path& path, ValueRef* out) {
  components_.assign(static_cast<std::size_t>(num_local()), &value);
  return add_tensors(components_, path, out);
}

// A value that is not distributed counts as one contribution of each worker, as in TensorFlow.
Status Reducer::add_of_workers(Value& value, const Path& path, ValueRef* out) {
  if (value.kind() == DIST_VALUE_INDEXED_SLICES) {
    Value* const mine[] = {&value};
    return add_slices(mine, path, out);
  }
  if (!value.has_tensor()) return not_reducible(value, path, 0);
  const dist_tensor tensor = value.tensor();
  uint32_t axes = 0;
  DIST_TRY(check_leaf({&tensor, 1}, path, &axes));
  ValueRef result;
  DIST_TRY(plan_.add_of_workers(op_, tensor, &result));
  return put_there(std::move(result), out);
}

Status Reducer::not_reducible(const Value& value, const Path& path, std::size_t replica) const noexcept {
  return fail(
      value.is_composite() ? DIST_UNIMPLEMENTED : DIST_INVALID_ARGUMENT,
      "%s: replica %zu has %s, but only tensors, nests of tensors and %sindexed slices can be reduced",
      PathText(path).c_str(), replica, Value::kind_name(value.kind()),
      to_one_tensor() ? "(without axes) " : "");
}

// For a value that is equal on all replicas: its mean is the value itself, and its sum is most likely a
// mistake.
Status Reducer::add_equal(Value& value, const Path& path, ValueRef* out) {
  const Variable* const variable = value.variable();
  const bool one_contribution =
      !value.distributed() && variable == nullptr &&
      (rules_ == ReduceRules::kAlone ||
       (rules_ == ReduceRules::kBatch && context_.kind == DIST_STRATEGY_CENTRAL_STORAGE));
  if (op_ == DIST_REDUCE_SUM && context_.replicas.global() != 1 && !one_contribution) {
    return invalid_argument(
        "SUM of %s, which is %s and not per-replica: use MEAN, or give every replica's own part",
        PathText(path).c_str(), Value::kind_name(value.kind()));
  }
  if (to_one_tensor() && variable != nullptr && variable->num_copies() != 1) {
    ValueRef copies;
    DIST_TRY(local_results(context_, value, &copies));
    *out = copies->items()[0];
    return kOk;
  }
  *out = to_one_tensor() && value.distributed() ? value.items()[0] : ValueRef::share(&value);
  return kOk;
}

Status Reducer::add_tensors(std::span<Value* const> values, const Path& path, ValueRef* out) {
  tensors_.clear();
  for (const Value* const value : values) {
    if (!value->has_tensor()) return not_reducible(*value, path, tensors_.size());
    tensors_.push_back(view(*value, LocalReplica(tensors_.size())));
  }
  return add_fold(tensors_, path, out);
}

Status Reducer::add_fold(std::span<const dist_tensor> tensors, const Path& path, ValueRef* out) {
  uint32_t axes = 0;
  DIST_TRY(check_leaf(tensors, path, &axes));
  if (!axes_.empty()) return reduce_axes(context_, op_, tensors, axes, out);
  const CrossDevice* const own = context_.cross_device;
  const bool asked = rules_ == ReduceRules::kBatch || rules_ == ReduceRules::kAlone;
  ValueRef result;
  if (host_reduces(context_)) {
    DIST_TRY(reduce_by_host(context_, op_, tensors, &result));
  } else if (asked && own != nullptr && own->accumulates()) {
    DIST_TRY(accumulate(*own, tensors, &result));
  } else {
    DIST_TRY(plan_.add(op_, tensors, &result));
  }
  return put_there(std::move(result), out);
}

Status Reducer::check_leaf(std::span<const dist_tensor> tensors, const Path& path,
                           uint32_t* out_axes) const noexcept {
  const dist_tensor& first = tensors[0];
  if (!check_op(op_, first.dtype).ok())
    return invalid_argument("%s: %s", PathText(path).c_str(), last_error().message);
  DIST_TRY(check_numerics_of(context_.numerics, first.dtype));
  if (!axes_.empty()) DIST_TRY(check_axes(axes_, first.ndim, PathText(path).c_str(), out_axes));
  for (std::size_t r = 1; r < tensors.size(); ++r) {
    bool equal = tensors[r].dtype == first.dtype && tensors[r].ndim == first.ndim;
    for (int32_t i = 0; equal && i < first.ndim; ++i) {
      equal = (*out_axes >> i & 1u) != 0 || tensors[r].shape[i] == first.shape[i];
    }
    if (equal) continue;
    char one[160];
    char other[160];
    describe(first, one, sizeof one);
    describe(tensors[r], other, sizeof other);
    return invalid_argument("%s: replica 0 has %s, but replica %zu has %s. %s.", PathText(path).c_str(), one,
                            r, other,
                            !to_one_tensor() ? "All replicas must have the same dtype and shape"
                            : axes_.empty()  ? "Without axes, all replicas must have the same dtype and shape"
                                             : "Sizes may differ only along the axes that are reduced");
  }
  return kOk;
}

// Folds from left to right with the host's operator; MEAN then divides by the number of replicas.
Status Reducer::accumulate(const CrossDevice& own, std::span<const dist_tensor> tensors, ValueRef* out) {
  ValueRef acc;
  DIST_TRY(Value::copy_tensor(*context_.memory, tensors[0], &acc));
  const dist_tensor sum = acc->tensor();
  TensorSize size;
  for (std::size_t r = 0; r < tensors.size(); ++r) {
    DIST_TRY(check_tensor(tensors[r], "component", &size));
    DIST_TRY(own.check_elements(tensors[r], size.bytes));
    if (r == 0 || size.elements == 0) continue;
    ValueRef dense;
    dist_tensor part = tensors[r];
    if (!size.contiguous) {
      DIST_TRY(Value::copy_tensor(*context_.memory, part, &dense));
      part = dense->tensor();
    }
    DIST_TRY(own.accumulate(part, size.bytes, sum.data));
  }
  if (op_ == DIST_REDUCE_SUM) {
    *out = std::move(acc);
    return kOk;
  }
  DIST_TRY(make_result(*context_.memory, op_, sum, out));
  const auto* const source = static_cast<const std::byte*>(sum.data);
  plan_.keep(std::move(acc));
  plan_.add(sum.dtype, DIST_REDUCE_MEAN, static_cast<double>(tensors.size()),
            static_cast<std::size_t>(size.elements), {&source, 1}, (*out)->tensor().data);
  return kOk;
}

Status Reducer::put_there(ValueRef result, ValueRef* out) {
  if (!to_one_tensor()) return put(context_, place_, std::move(result), out);
  *out = std::move(result);
  return kOk;
}

}  // namespace dist
