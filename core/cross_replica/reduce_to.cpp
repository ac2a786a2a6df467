// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/reduce_to.hpp"

#include <memory_resource>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/cross_replica/cross_device.hpp"
#include "core/cross_replica/fold.hpp"
#include "core/cross_replica/host_calls.hpp"
#include "core/cross_replica/slices.hpp"
#include "core/value/nest.hpp"
#include "core/value/path.hpp"
#include "core/value/variable.hpp"

namespace dist {
namespace {

// Walks nests, states one fold for each leaf, and runs them all at the end.
class Reducer {
 public:
  Reducer(const CrossReplica& context, ReduceRules rules, dist_reduce_op op)
      : context_(context), rules_(rules), op_(op), plan_(*context.memory) {}

  Status set_destination(const Destination& destination) noexcept {
    return resolve(context_, destination, &place_);
  }

  // *out is complete after run().
  Status add(Value& value, const Path& path, ValueRef* out) {
    if (value.is_nest()) return add_items(value, path, out);
    if (value.kind() == DIST_VALUE_PER_REPLICA) return add_components(value, path, out);
    const Variable* const variable = value.variable();
    if (variable != nullptr && variable->sync_on_read()) return add_copies(*variable, path, out);
    return add_equal(value, path, out);
  }

  Status run() { return plan_.run(*context_.arena); }

 private:
  std::size_t num_replicas() const noexcept { return static_cast<std::size_t>(context_.num_replicas); }

  Status add_items(Value& value, const Path& path, ValueRef* out) {
    return map_items(
        *context_.memory, value, path,
        [this](Value& item, const Path& here, ValueRef* made) { return add(item, here, made); }, out);
  }

  // A fold over the components, which may be nests or composites.
  Status add_components(Value& value, const Path& path, ValueRef* out) {
    if (value.items().size() != num_replicas()) {
      return invalid_argument("%s is %s of %zu components for %zu replicas: it was made for another strategy",
                              PathText(path).c_str(), Value::kind_name(value.kind()), value.items().size(),
                              num_replicas());
    }
    if (num_replicas() == 1) {
      *out = value.items()[0];
      return kOk;
    }
    std::pmr::vector<Value*> components(context_.memory);
    std::pmr::vector<dist_tensor> tensors(context_.memory);
    for (const ValueRef& component : value.items()) components.push_back(component.get());
    if (components[0]->kind() == DIST_VALUE_INDEXED_SLICES) {
      ValueRef joined;
      DIST_TRY(join_slices(context_, plan_, op_, components, path, &joined));
      return put(context_, place_, std::move(joined), out);
    }
    for (Value* const component : components) {
      if (component->is_nest()) return add_nests(components, path, out);
      if (!component->has_tensor()) {
        return fail(component->is_composite() ? DIST_UNIMPLEMENTED : DIST_INVALID_ARGUMENT,
                    "%s: replica %zu has %s; tensors and indexed slices are reduced, and nests of them",
                    PathText(path).c_str(), tensors.size(), Value::kind_name(component->kind()));
      }
      const Variable* const variable = component->variable();
      tensors.push_back(variable != nullptr ? variable->component(static_cast<int32_t>(tensors.size()))
                                            : component->tensor());
    }
    return add_fold(tensors, path, out);
  }

  // Components that are nests: a nest of per-replica values.
  Status add_nests(std::span<Value* const> components, const Path& path, ValueRef* out) {
    ValueRef nest;
    DIST_TRY(merge_leaves(*context_.memory, components, PathText(path).c_str(), &nest));
    return add(*nest, path, out);
  }

  // A variable of which every replica writes its own copy.
  Status add_copies(const Variable& variable, const Path& path, ValueRef* out) {
    if (variable.num_copies() != context_.num_replicas) {
      return invalid_argument("%s: variable \"%s\" has %d copies for %zu replicas: it is another strategy's",
                              PathText(path).c_str(), variable.name(), variable.num_copies(), num_replicas());
    }
    std::pmr::vector<dist_tensor> tensors(context_.memory);
    for (int32_t copy = 0; copy < variable.num_copies(); ++copy) tensors.push_back(variable.component(copy));
    return add_fold(tensors, path, out);
  }

  // What all replicas have in common: its mean is what it is, its sum most likely a mistake.
  Status add_equal(Value& value, const Path& path, ValueRef* out) {
    const bool distributed = value.distributed() || value.variable() != nullptr;
    const bool one_contribution =
        !distributed && (rules_ == ReduceRules::kAlone ||
                         (rules_ == ReduceRules::kBatch && context_.kind == DIST_STRATEGY_CENTRAL_STORAGE));
    if (op_ == DIST_REDUCE_SUM && num_replicas() != 1 && !one_contribution) {
      return invalid_argument(
          "SUM of %s, which is %s and not per-replica: use MEAN, or give every replica's own part",
          PathText(path).c_str(), Value::kind_name(value.kind()));
    }
    *out = ValueRef::share(&value);
    return kOk;
  }

  Status add_fold(std::span<const dist_tensor> tensors, const Path& path, ValueRef* out) {
    DIST_TRY(check_leaf(tensors, path));
    ValueRef result;
    const CrossDevice* const own = context_.cross_device;
    if (host_reduces(context_)) {
      DIST_TRY(reduce_by_host(context_, op_, tensors, &result));
    } else if (own != nullptr && own->accumulates() && rules_ != ReduceRules::kReduceTo) {
      DIST_TRY(accumulate(*own, tensors, &result));
    } else {
      DIST_TRY(plan_.add(op_, tensors, &result));
    }
    return put(context_, place_, std::move(result), out);
  }

  Status check_leaf(std::span<const dist_tensor> tensors, const Path& path) const noexcept {
    const dist_tensor& first = tensors[0];
    const PathText where(path);
    if (!check_op(op_, first.dtype).ok())
      return invalid_argument("%s: %s", where.c_str(), last_error().message);
    for (std::size_t r = 1; r < tensors.size(); ++r) {
      if (tensors[r].dtype == first.dtype && same_shape(tensors[r], first)) continue;
      char one[160];
      char other[160];
      describe(first, one, sizeof one);
      describe(tensors[r], other, sizeof other);
      return invalid_argument("%s: replica 0 has %s, replica %zu %s; all have one dtype and shape",
                              where.c_str(), one, r, other);
    }
    return kOk;
  }

  // From left to right by the host's operator; MEAN then divides by the number of replicas.
  Status accumulate(const CrossDevice& own, std::span<const dist_tensor> tensors, ValueRef* out) {
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
      own.accumulate(part, size.bytes, sum.data);
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

  const CrossReplica& context_;
  const ReduceRules rules_;
  const dist_reduce_op op_;
  FoldPlan plan_;
  Place place_;
};

}  // namespace

Status reduce_to(const CrossReplica& context, ReduceRules rules, dist_reduce_op op,
                 std::span<Value* const> values, std::span<const Destination> destinations,
                 std::span<ValueRef> outs) {
  DIST_TRY(check_reduction(op));
  Reducer reducer(context, rules, op);
  std::pmr::vector<ValueRef> results(values.size(), context.memory);
  const Path all{"values"};
  for (std::size_t k = 0; k < values.size(); ++k) {
    Destination everywhere;
    everywhere.everywhere = true;
    DIST_TRY(reducer.set_destination(destinations.empty() ? everywhere : destinations[k]));
    const Path path = values.size() == 1 ? Path{"value"} : Path::item(all, k);
    DIST_TRY(reducer.add(*values[k], path, &results[k]));
  }
  DIST_TRY(reducer.run());
  for (std::size_t k = 0; k < values.size(); ++k) outs[k] = std::move(results[k]);
  return kOk;
}

Status broadcast_to(const CrossReplica& context, Value& value, const Destination& destination,
                    ValueRef* out) {
  Place place;
  DIST_TRY(resolve(context, destination, &place));
  if (value.holds_distributed()) {
    return invalid_argument(
        "value is %s: what every replica has its own of cannot be broadcast; give one tensor",
        value.distributed() ? Value::kind_name(value.kind()) : "a nest of per-replica values");
  }
  const CrossDevice* const own = context.cross_device;
  const bool by_host = own != nullptr && own->host().broadcast != nullptr;
  if (by_host && place.mirrored && value.has_tensor()) {
    return broadcast_by_host(context, value.tensor(), out);
  }
  return put(context, place, ValueRef::share(&value), out);
}

int32_t replicas_of(std::span<Value* const> values, std::span<const Destination> destinations) noexcept {
  for (const Value* const value : values) {
    if (value->distributed()) return static_cast<int32_t>(value->items().size());
  }
  for (const Destination& destination : destinations) {
    if (destination.value != nullptr && destination.value->distributed()) {
      return static_cast<int32_t>(destination.value->items().size());
    }
    if (destination.variable != nullptr) return destination.variable->num_copies();
  }
  return 1;
}

}  // namespace dist
