// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/reduce.hpp"

#include <memory_resource>
#include <vector>

#include "core/cross_replica/axis_reduce.hpp"
#include "core/cross_replica/fold.hpp"
#include "core/cross_replica/host_calls.hpp"
#include "core/cross_replica/local_results.hpp"
#include "core/cross_replica/slices.hpp"
#include "core/value/nest.hpp"
#include "core/value/path.hpp"

namespace dist {
namespace {

// Walks nests, states one fold for each leaf, and runs them all at the end.
class Reducer {
 public:
  Reducer(const CrossReplica& context, dist_reduce_op op)
      : context_(context), op_(op), plan_(*context.memory) {}

  void set_axes(std::span<const int32_t> axes) noexcept { axes_ = axes; }

  // *out is complete after run().
  Status add(Value& value, const Path& path, ValueRef* out) {
    if (value.is_nest()) return add_items(value, path, out);
    if (value.distributed()) {
      DIST_TRY(check_components(value, path));
      if (value.kind() == DIST_VALUE_PER_REPLICA || !axes_.empty()) return add_components(value, path, out);
    }
    const Variable* const variable = value.variable();
    if (variable == nullptr)
      return axes_.empty() ? add_equal(value, path, out) : add_copies(value, path, out);
    if (variable->num_copies() != num_replicas() && variable->num_copies() != 1) {
      return invalid_argument("%s: variable \"%s\" has %d copies for %d replicas: it is another strategy's",
                              PathText(path).c_str(), variable->name(), variable->num_copies(),
                              num_replicas());
    }
    if (!axes_.empty() || variable->sync_on_read()) return add_copies(value, path, out);
    return add_equal(value, path, out);
  }

  Status run() { return plan_.run(*context_.arena); }

 private:
  int32_t num_replicas() const noexcept { return context_.num_replicas; }

  Status add_items(Value& value, const Path& path, ValueRef* out) {
    if (!axes_.empty()) {
      return invalid_argument(
          "%s is %s: axes are those of one tensor; reduce its items one by one, or without axes",
          PathText(path).c_str(), Value::kind_name(value.kind()));
    }
    return map_items(
        *context_.memory, value, path,
        [this](Value& item, const Path& here, ValueRef* made) { return add(item, here, made); }, out);
  }

  Status check_components(const Value& value, const Path& path) const noexcept {
    if (value.items().size() == static_cast<std::size_t>(num_replicas())) return kOk;
    return invalid_argument("%s is %s of %zu components for %d replicas: it was made for another strategy",
                            PathText(path).c_str(), Value::kind_name(value.kind()), value.items().size(),
                            num_replicas());
  }

  // A distributed value: a fold over its components, which may be nests or indexed slices. One component is
  // what it is, whatever it is.
  Status add_components(Value& value, const Path& path, ValueRef* out) {
    if (axes_.empty() && num_replicas() == 1) {
      *out = value.items()[0];
      return kOk;
    }
    std::pmr::vector<Value*> components(context_.memory);
    for (const ValueRef& component : value.items()) components.push_back(component.get());
    for (const Value* const component : components) {
      if (component->is_nest()) return add_nests(components, path, out);
    }
    if (axes_.empty() && components[0]->kind() == DIST_VALUE_INDEXED_SLICES) {
      return join_slices(context_, plan_, op_, components, path, out);
    }
    return add_tensors(components, path, out);
  }

  // Components that are nests: a nest of per-replica values.
  Status add_nests(std::span<Value* const> components, const Path& path, ValueRef* out) {
    ValueRef nest;
    DIST_TRY(merge_leaves(*context_.memory, components, PathText(path).c_str(), &nest));
    return add(*nest, path, out);
  }

  // What every replica has in common, each its own copy where it is a variable.
  Status add_copies(Value& value, const Path& path, ValueRef* out) {
    const std::pmr::vector<Value*> copies(static_cast<std::size_t>(num_replicas()), &value, context_.memory);
    return add_tensors(copies, path, out);
  }

  // What is the same on every replica already: its mean is what it is, its sum most likely a mistake.
  Status add_equal(Value& value, const Path& path, ValueRef* out) {
    if (op_ == DIST_REDUCE_SUM && num_replicas() != 1) {
      return invalid_argument(
          "SUM of %s, which is %s and not per-replica: use MEAN, or give every replica's own part",
          PathText(path).c_str(), Value::kind_name(value.kind()));
    }
    if (value.variable() != nullptr && value.variable()->num_copies() != 1) {
      ValueRef copies;
      DIST_TRY(local_results(context_, value, &copies));
      *out = copies->items()[0];
      return kOk;
    }
    *out = value.distributed() ? value.items()[0] : ValueRef::share(&value);
    return kOk;
  }

  Status add_tensors(std::span<Value* const> values, const Path& path, ValueRef* out) {
    std::pmr::vector<dist_tensor> tensors(context_.memory);
    tensors.reserve(values.size());
    for (const Value* const value : values) {
      if (!value->has_tensor()) {
        return fail(
            value->is_composite() ? DIST_UNIMPLEMENTED : DIST_INVALID_ARGUMENT,
            "%s: replica %zu has %s; tensors are reduced, nests of them, and without axes indexed slices",
            PathText(path).c_str(), tensors.size(), Value::kind_name(value->kind()));
      }
      tensors.push_back(view(*value, static_cast<int32_t>(tensors.size())));
    }
    return add_fold(tensors, path, out);
  }

  // What replica `id` has of a tensor or variable.
  static dist_tensor view(const Value& value, int32_t id) noexcept {
    return value.variable() != nullptr ? value.variable()->component(id) : value.tensor();
  }

  Status add_fold(std::span<const dist_tensor> tensors, const Path& path, ValueRef* out) {
    uint32_t mask = 0;
    DIST_TRY(check_leaf(tensors, path, &mask));
    if (axes_.empty() && host_reduces(context_)) return reduce_by_host(context_, op_, tensors, out);
    if (axes_.empty()) return plan_.add(op_, tensors, out);
    return reduce_axes(context_, op_, tensors, mask, out);
  }

  Status check_leaf(std::span<const dist_tensor> tensors, const Path& path,
                    uint32_t* out_mask) const noexcept {
    const dist_tensor& first = tensors[0];
    const PathText where(path);
    if (!check_op(op_, first.dtype).ok())
      return invalid_argument("%s: %s", where.c_str(), last_error().message);
    DIST_TRY(check_axes(axes_, first.ndim, where.c_str(), out_mask));
    for (std::size_t r = 1; r < tensors.size(); ++r) {
      bool equal = tensors[r].dtype == first.dtype && tensors[r].ndim == first.ndim;
      for (int32_t i = 0; equal && i < first.ndim; ++i) {
        equal = (*out_mask >> i & 1u) != 0 || tensors[r].shape[i] == first.shape[i];
      }
      if (equal) continue;
      char one[160];
      char other[160];
      describe(first, one, sizeof one);
      describe(tensors[r], other, sizeof other);
      return invalid_argument("%s: replica 0 has %s, replica %zu %s; %s", where.c_str(), one, r, other,
                              axes_.empty() ? "without axes all have one dtype and shape"
                                            : "sizes may differ along the axes that are reduced only");
    }
    return kOk;
  }

  const CrossReplica& context_;
  dist_reduce_op op_;
  FoldPlan plan_;
  std::span<const int32_t> axes_;
};

}  // namespace

Status reduce(const CrossReplica& context, dist_reduce_op op, Value& value, const int32_t* axes,
              std::size_t num_axes, ValueRef* out) {
  DIST_TRY(check_reduction(op));
  Reducer reducer(context, op);
  if (axes != nullptr) reducer.set_axes({axes, num_axes});
  ValueRef result;
  DIST_TRY(reducer.add(value, Path{"value"}, &result));
  DIST_TRY(reducer.run());
  *out = std::move(result);
  return kOk;
}

}  // namespace dist
