// SPDX-License-Identifier: Apache-2.0
#include "core/run/exchange_values.hpp"

#include <algorithm>

#include "core/cross_replica/fold.hpp"
#include "core/run/replica_pool.hpp"
#include "core/value/composite.hpp"
#include "core/value/path.hpp"
#include "core/value/variable.hpp"

namespace dist {
namespace {

using Tensors = std::pmr::vector<dist_tensor>;

// The leaves of a nest by kind, each from left to right.
struct Leaves {
  explicit Leaves(Memory& memory) : tensors(&memory), slices(&memory) {}

  Tensors tensors;
  std::pmr::vector<const Value*> slices;
  uint64_t structure = 1;
};

// Checks that the leaf can take part, as far as a single replica can tell.
Status check_leaf(const Call& call, const Value& value, const Path& path) noexcept {
  if (value.has_tensor()) return kOk;
  if (value.kind() == DIST_VALUE_INDEXED_SLICES && call.reduces()) {
    if ((call.op == DIST_REDUCE_SUM || call.op == DIST_REDUCE_MEAN) && call.weights == nullptr) return kOk;
    return fail(DIST_UNIMPLEMENTED, "%s is indexed slices, which support only SUM and MEAN without weights",
                PathText(path).c_str());
  }
  return fail(value.kind() == DIST_VALUE_INDEXED_SLICES ? DIST_UNIMPLEMENTED : DIST_INVALID_ARGUMENT,
              "%s is %s, but %s takes only tensors and nests of tensors", PathText(path).c_str(),
              Value::kind_name(value.kind()), collective_name(call.collective));
}

Status flatten(const Call& call, const Value& value, const Path& path, LocalReplica replica, Leaves& leaves) {
  const bool plain = value.has_tensor();
  leaves.structure = mix(leaves.structure, plain ? 0 : static_cast<uint64_t>(value.kind()));
  if (!value.is_nest()) {
    DIST_TRY(check_leaf(call, value, path));
    if (!plain) {
      leaves.slices.push_back(&value);
    } else {
      leaves.tensors.push_back(value.variable() != nullptr ? value.variable()->component(replica)
                                                           : value.tensor());
    }
    return kOk;
  }
  const auto items = value.items();
  const bool keyed = value.kind() == DIST_VALUE_DICT;
  leaves.structure = mix(leaves.structure, items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (const char* c = keyed ? value.key(i) : ""; *c != '\0'; ++c)
      leaves.structure = mix(leaves.structure, static_cast<uint8_t>(*c));
    const Path here = keyed ? Path::item(path, value.key(i)) : Path::item(path, i);
    DIST_TRY(flatten(call, *items[i], here, replica, leaves));
  }
  return kOk;
}

// The results, to be inserted into the nest.
struct Results {
  explicit Results(Memory& memory) : tensors(&memory), slices(&memory) {}

  std::pmr::vector<ValueRef> tensors;
  std::pmr::vector<ValueRef> slices;
  std::size_t next_tensor = 0;
  std::size_t next_slices = 0;
};

Status rebuild(Memory& memory, const Value& like, Results& results, ValueRef* out) {
  if (!like.is_nest()) {
    *out = like.has_tensor() ? results.tensors[results.next_tensor++] : results.slices[results.next_slices++];
    return kOk;
  }
  const auto items = like.items();
  std::pmr::vector<ValueRef> rebuilt(items.size(), &memory);
  std::pmr::vector<Value*> pointers(items.size(), &memory);
  for (std::size_t i = 0; i < items.size(); ++i) {
    DIST_TRY(rebuild(memory, *items[i], results, &rebuilt[i]));
    pointers[i] = rebuilt[i].get();
  }
  return Value::create_like(memory, like, pointers, out);
}

Status check_axis(const Call& call, const Tensors& leaves) noexcept {
  for (std::size_t t = 0; t < leaves.size(); ++t) {
    if (call.axis >= -leaves[t].ndim && call.axis < leaves[t].ndim) continue;
    return invalid_argument("`axis` is %d, but leaf %zu of the value has %d dimensions", call.axis, t,
                            leaves[t].ndim);
  }
  return kOk;
}

int32_t axis_in(const Call& call, const dist_tensor& tensor) noexcept {
  return call.axis < 0 ? call.axis + tensor.ndim : call.axis;
}

// For all_gather: adds up the members' sizes along the axis for each leaf. This needs a round of its own,
// because results must be allocated before the tensors are exchanged.
Status gather_sizes(const Member& member, const Call& call, const Tensors& leaves,
                    std::pmr::vector<int64_t>& sizes) {
  for (std::size_t t = 0; t < leaves.size(); ++t) sizes[t] = leaves[t].shape[axis_in(call, leaves[t])];
  const auto n = static_cast<int64_t>(leaves.size());
  dist_tensor tensor{sizes.data(), DIST_I64, 1, &n, nullptr};
  Call add;
  add.collective = Collective::kAllReduce;
  add.op = DIST_REDUCE_SUM;
  add.in = add.out = &tensor;
  add.n = 1;
  add.salt = call.salt;
  return collective(member, add);
}

// Executes the call with `leaves`. The results are new tensors.
Status exchange(Memory& memory, const Member& member, Call& call, const Tensors& leaves,
                std::pmr::vector<ValueRef>& results) {
  std::pmr::vector<int64_t> sizes(leaves.size(), 0, &memory);
  if (call.joins()) {
    DIST_TRY(check_axis(call, leaves));
    DIST_TRY(gather_sizes(member, call, leaves, sizes));
  }
  results.resize(leaves.size());
  Tensors outputs(&memory);
  for (std::size_t t = 0; t < leaves.size(); ++t) {
    int64_t shape[DIST_MAX_NDIM];
    std::copy_n(leaves[t].shape, leaves[t].ndim, shape);
    if (call.joins()) shape[axis_in(call, leaves[t])] = sizes[t];
    const dist_tensor wanted{nullptr, call.out_dtype(leaves[t].dtype), leaves[t].ndim, shape, nullptr};
    DIST_TRY(Value::copy_tensor(memory, wanted, &results[t]));
    outputs.push_back(results[t]->tensor());
  }
  call.in = leaves.data();
  call.out = outputs.data();
  call.n = leaves.size();
  return collective(member, call);
}

// *out = rows / n, in the dtype of MEAN.
Status divide(Replica& replica, const ValueRef& rows, int n, ValueRef* out) {
  Memory& memory = replica.pool().memory();
  const dist_tensor from = rows->tensor();
  dist_tensor to = from;
  to.data = nullptr;
  to.dtype = dtype_of_mean(from.dtype);
  DIST_TRY(Value::copy_tensor(memory, to, out));
  const auto* const source = static_cast<const std::byte*>(from.data);
  FoldPlan plan(memory);
  plan.add(from.dtype, DIST_REDUCE_MEAN, n, elements_of(from), {&source, 1}, (*out)->tensor().data);
  return plan.run(replica.arena());
}

// Joins the indexed slices of all members: concatenates rows and indices. Indices may repeat.
Status join_slices(Replica& replica, const Member& member, const Call& reduction, const Leaves& leaves,
                   std::pmr::vector<ValueRef>& results) {
  Memory& memory = replica.pool().memory();
  Tensors parts(&memory);
  for (const Value* const slices : leaves.slices) {
    const Status fits = check_op(reduction.op, slices->items()[0]->tensor().dtype);
    if (!fits.ok()) return fits;
    for (std::size_t part = 0; part < 2; ++part) parts.push_back(slices->items()[part]->tensor());
  }
  Call call;
  call.collective = Collective::kAllGather;
  call.salt = reduction.salt;
  std::pmr::vector<ValueRef> joined(&memory);
  DIST_TRY(exchange(memory, member, call, parts, joined));
  for (std::size_t i = 0; i < leaves.slices.size(); ++i) {
    ValueRef rows = joined[2 * i];
    if (reduction.op == DIST_REDUCE_MEAN)
      DIST_TRY(divide(replica, joined[2 * i], member.num_global(), &rows));
    Value* const items[] = {rows.get(), joined[2 * i + 1].get(), leaves.slices[i]->items()[2].get()};
    results.emplace_back();
    DIST_TRY(create_composite(memory, DIST_VALUE_INDEXED_SLICES, items, &results.back()));
  }
  return kOk;
}

// For the only replica of a strategy: nothing is computed, so dtypes and shapes do not change.
Status give_back(Memory& memory, const Leaves& leaves, Results& results) {
  results.tensors.resize(leaves.tensors.size());
  for (std::size_t t = 0; t < leaves.tensors.size(); ++t) {
    DIST_TRY(Value::copy_tensor(memory, leaves.tensors[t], &results.tensors[t]));
  }
  for (const Value* const slices : leaves.slices) {
    results.slices.push_back(ValueRef::share(const_cast<Value*>(slices)));
  }
  return kOk;
}

}  // namespace

Status exchange_values(Replica& replica, const Member& member, Call call, Value& value, ValueRef* out) {
  if (call.reduces() && (call.op < DIST_REDUCE_SUM || call.op > DIST_REDUCE_USER)) {
    return invalid_argument("`op` is `%d`; use `DIST_REDUCE_SUM` or another `DIST_REDUCE_...`", call.op);
  }
  Memory& memory = replica.pool().memory();
  ValueRef own;
  DIST_TRY(component_of(memory, &value, replica.local(), &own));
  Leaves leaves(memory);
  DIST_TRY(flatten(call, *own, Path{"value"}, replica.local(), leaves));
  call.salt = leaves.structure;
  Results results(memory);
  if (replica.pool().alone()) {
    DIST_TRY(give_back(memory, leaves, results));
    return rebuild(memory, *own, results, out);
  }
  if (!leaves.tensors.empty() || leaves.slices.empty()) {
    DIST_TRY(exchange(memory, member, call, leaves.tensors, results.tensors));
  }
  if (!leaves.slices.empty()) DIST_TRY(join_slices(replica, member, call, leaves, results.slices));
  return rebuild(memory, *own, results, out);
}

}  // namespace dist
