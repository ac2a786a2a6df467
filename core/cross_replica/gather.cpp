// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/gather.hpp"

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/cross_replica/across_workers.hpp"
#include "core/cross_replica/cross_device.hpp"
#include "core/cross_replica/fold.hpp"
#include "core/cross_replica/host_calls.hpp"
#include "core/value/nest.hpp"
#include "core/value/variable.hpp"

namespace dist {
namespace {

// Checks that the tensors fit together, and computes the concatenated shape.
Status check_parts(std::span<const dist_tensor> tensors, int32_t axis, const Path& path,
                   int64_t (&shape)[DIST_MAX_NDIM], int32_t* out_axis) noexcept {
  const dist_tensor& first = tensors[0];
  const int32_t at = axis < 0 ? axis + first.ndim : axis;
  if (at < 0 || at >= first.ndim) {
    return invalid_argument("%s: `axis` is %d, but the tensors have %d dimensions: %s",
                            PathText(path).c_str(), axis, first.ndim,
                            first.ndim == 0 ? "scalars cannot be joined" : "use one of these");
  }
  std::copy_n(first.shape, first.ndim, shape);
  for (std::size_t r = 1; r < tensors.size(); ++r) {
    bool fits = tensors[r].dtype == first.dtype && tensors[r].ndim == first.ndim;
    for (int32_t i = 0; fits && i < first.ndim; ++i) fits = i == at || tensors[r].shape[i] == first.shape[i];
    if (fits) {
      shape[at] += tensors[r].shape[at];
      continue;
    }
    char one[160];
    char other[160];
    describe(first, one, sizeof one);
    describe(tensors[r], other, sizeof other);
    return invalid_argument(
        "%s: replica 0 has %s, but replica %zu has %s. Sizes may differ along axis %d only.",
        PathText(path).c_str(), one, r, other, at);
  }
  *out_axis = at;
  return kOk;
}

// Copies every tensor to its place in `joined`.
Status copy_parts(const CrossReplica& context, std::span<const dist_tensor> tensors, int32_t axis,
                  const dist_tensor& joined) {
  int64_t strides[DIST_MAX_NDIM];
  int64_t elements = 1;
  for (int32_t i = joined.ndim - 1; i >= 0; --i) {
    strides[i] = elements;
    elements *= joined.shape[i];
  }
  const std::size_t size = dtype_size(joined.dtype);
  const auto copy = [&](int64_t first, int64_t last) {
    int64_t before = 0;
    for (int64_t r = 0; r < last; ++r) {
      const dist_tensor& part = tensors[static_cast<std::size_t>(r)];
      if (r >= first) {
        auto* const data =
            static_cast<std::byte*>(joined.data) + static_cast<std::size_t>(before * strides[axis]) * size;
        copy_elements(part, {data, part.dtype, part.ndim, part.shape, strides});
      }
      before += part.shape[axis];
    }
  };
  const auto count = static_cast<int64_t>(tensors.size());
  if (static_cast<std::size_t>(elements) * size > FoldPlan::kSerialBytes) {
    return context.arena->parallel_for(0, count, 1, copy);
  }
  copy(0, count);
  return kOk;
}

class Gatherer {
 public:
  Gatherer(const CrossReplica& context, int32_t axis) noexcept : context_(context), axis_(axis) {}

  Status gather(Value& value, const Path& path, ValueRef* out) {
    if (value.is_nest()) return gather_items(value, path, out);
    if (!value.distributed()) return gather_undistributed(value, path, out);
    if (static_cast<int32_t>(value.items().size()) != context_.replicas.local()) {
      return invalid_argument(
          "%s is %s of %zu components, but the strategy has %d replicas: it was created for another strategy",
          PathText(path).c_str(), Value::kind_name(value.kind()), value.items().size(),
          context_.replicas.local());
    }
    return gather_components(value, path, out);
  }

 private:
  Status gather_items(Value& value, const Path& path, ValueRef* out) {
    return map_items(
        *context_.memory, value, path,
        [this](Value& item, const Path& here, ValueRef* made) { return gather(item, here, made); }, out);
  }

  // The copies of a variable are distinct, like components. Other values that are not distributed are
  // returned unchanged.
  Status gather_undistributed(Value& value, const Path& path, ValueRef* out) {
    if (value.kind() == DIST_VALUE_INDEXED_SLICES) {
      return fail(DIST_UNIMPLEMENTED, "%s is %s, but only tensors and nests of tensors can be gathered",
                  PathText(path).c_str(), Value::kind_name(value.kind()));
    }
    const Variable* const variable = value.variable();
    // With several workers, the value is one part for each worker.
    if (variable == nullptr && context_.workers != nullptr && value.has_tensor()) {
      const dist_tensor mine = value.tensor();
      return join(context_, {&mine, 1}, axis_, path, out);
    }
    if (variable == nullptr || (variable->num_copies() == 1 && context_.workers == nullptr)) {
      *out = ValueRef::share(&value);
      return kOk;
    }
    if (variable->num_copies() != context_.replicas.local()) {
      return invalid_argument(
          "%s is a variable with %d copies, but the strategy has %d replicas: it was created for another "
          "strategy",
          PathText(path).c_str(), variable->num_copies(), context_.replicas.local());
    }
    std::pmr::vector<dist_tensor> tensors(context_.memory);
    for (int32_t r = 0; r < context_.replicas.local(); ++r)
      tensors.push_back(variable->component(LocalReplica{r}));
    return join(context_, tensors, axis_, path, out);
  }

  Status gather_components(Value& value, const Path& path, ValueRef* out) {
    std::pmr::vector<Value*> components(context_.memory);
    for (const ValueRef& component : value.items()) components.push_back(component.get());
    if (std::any_of(components.begin(), components.end(), [](const Value* each) { return each->is_nest(); }))
      DIST_TRY(check_alike(*context_.memory, components, path));
    return gather_column(components, path, out);
  }

  // For components with the same structure; nests become nests of concatenated leaves.
  Status gather_column(std::span<Value* const> components, const Path& path, ValueRef* out) {
    if (components[0]->is_nest()) {
      return map_columns(
          *context_.memory, components, path,
          [this](std::span<Value* const> column, const Path& here, ValueRef* made) {
            return gather_column(column, here, made);
          },
          out);
    }
    std::pmr::vector<dist_tensor> tensors(context_.memory);
    for (const Value* const component : components) {
      if (!component->has_tensor()) {
        return fail(
            component->kind() == DIST_VALUE_INDEXED_SLICES ? DIST_UNIMPLEMENTED : DIST_INVALID_ARGUMENT,
            "%s: replica %zu has %s, but only tensors and nests of tensors can be gathered",
            PathText(path).c_str(), tensors.size(), Value::kind_name(component->kind()));
      }
      const Variable* const variable = component->variable();
      tensors.push_back(variable != nullptr ? variable->component(LocalReplica(tensors.size()))
                                            : component->tensor());
    }
    return join(context_, tensors, axis_, path, out);
  }

  const CrossReplica& context_;
  const int32_t axis_;
};

}  // namespace

Status join(const CrossReplica& context, std::span<const dist_tensor> tensors, int32_t axis, const Path& path,
            ValueRef* out) {
  int64_t shape[DIST_MAX_NDIM];
  int32_t at = 0;
  TensorSize size;
  for (const dist_tensor& tensor : tensors) DIST_TRY(check_tensor(tensor, PathText(path).c_str(), &size));
  DIST_TRY(check_parts(tensors, axis, path, shape, &at));
  ValueRef joined;
  const dist_tensor wanted{nullptr, tensors[0].dtype, tensors[0].ndim, shape, nullptr};
  DIST_TRY(Value::copy_tensor(*context.memory, wanted, &joined));
  const dist_tensor to = joined->tensor();
  const CrossDevice* const host = context.cross_device;
  if (host != nullptr && host->host().gather != nullptr) {
    DIST_TRY(gather_by_host(context, tensors, at, to));
  } else {
    DIST_TRY(copy_parts(context, tensors, at, to));
  }
  if (context.workers != nullptr) return context.workers->join(to, at, out);
  *out = std::move(joined);
  return kOk;
}

Status gather(const CrossReplica& context, Value& value, int32_t axis, ValueRef* out) {
  if (context.replicas.global() == 1 && !value.distributed()) {
    *out = ValueRef::share(&value);
    return kOk;
  }
  return Gatherer(context, axis).gather(value, Path{"value"}, out);
}

}  // namespace dist
