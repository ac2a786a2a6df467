// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/slices.hpp"

#include <memory_resource>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/cross_replica/across_workers.hpp"
#include "core/cross_replica/gather.hpp"
#include "core/value/composite.hpp"

namespace dist {
namespace {

// Concatenates part `part` of every replica's slices along the first dimension.
Status join_part(const CrossReplica& context, std::span<Value* const> slices, std::size_t part,
                 const Path& path, ValueRef* out) {
  std::pmr::vector<dist_tensor> tensors(context.memory);
  for (const Value* const value : slices) tensors.push_back(value->items()[part]->tensor());
  // Always uses libdist's own concatenation, because the host's functions accept only tensors.
  CrossReplica own = context;
  own.cross_device = nullptr;
  return join(own, tensors, 0, path, out);
}

// *out = rows / n, in the result dtype of MEAN.
Status divide(const CrossReplica& context, FoldPlan& plan, const ValueRef& rows, double n, ValueRef* out) {
  const dist_tensor from = rows->tensor();
  dist_tensor to = from;
  to.data = nullptr;
  to.dtype = dtype_of_mean(from.dtype);
  DIST_TRY(Value::copy_tensor(*context.memory, to, out));
  TensorSize size;
  DIST_TRY(check_tensor(from, "values", &size));
  const auto* const source = static_cast<const std::byte*>(from.data);
  plan.keep(rows);
  plan.add(from.dtype, DIST_REDUCE_MEAN, n, static_cast<std::size_t>(size.elements), {&source, 1},
           (*out)->tensor().data);
  return kOk;
}

// Counts the slices of all workers: one for each replica of a worker, or a single one.
Status count_all(const CrossReplica& context, std::size_t mine, double* out) {
  auto all = static_cast<int64_t>(mine);
  dist_tensor count{&all, DIST_I64, 0, nullptr, nullptr};
  if (context.workers != nullptr)
    DIST_TRY(context.workers->reduce(DIST_REDUCE_SUM, DIST_NUMERICS_ORDERED, {&count, 1}, {&count, 1}));
  *out = static_cast<double>(all);
  return kOk;
}

}  // namespace

Status join_slices(const CrossReplica& context, FoldPlan& plan, dist_reduce_op op,
                   std::span<Value* const> slices, const Path& path, ValueRef* out) {
  for (const Value* const value : slices) {
    if (value->kind() == DIST_VALUE_INDEXED_SLICES) continue;
    return invalid_argument(
        "%s: replica 0 has indexed slices, but another replica has %s. All replicas must pass the same kind "
        "of value.",
        PathText(path).c_str(), Value::kind_name(value->kind()));
  }
  ValueRef rows;
  ValueRef indices;
  DIST_TRY(join_part(context, slices, 0, path, &rows));
  if (const Status fits = check_op(op, rows->tensor().dtype); !fits.ok()) {
    return invalid_argument("%s: %s", PathText(path).c_str(), last_error().message);
  }
  DIST_TRY(join_part(context, slices, 1, path, &indices));
  if (op == DIST_REDUCE_MEAN) {
    ValueRef divided;
    double contributions = 0;
    DIST_TRY(count_all(context, slices.size(), &contributions));
    DIST_TRY(divide(context, plan, rows, contributions, &divided));
    rows = std::move(divided);
  }
  Value* const parts[] = {rows.get(), indices.get(), slices[0]->items()[2].get()};
  return create_composite(*context.memory, DIST_VALUE_INDEXED_SLICES, parts, out);
}

}  // namespace dist
