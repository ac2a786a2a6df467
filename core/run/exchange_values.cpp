// SPDX-License-Identifier: Apache-2.0
#include "core/run/exchange_values.hpp"

#include <algorithm>

#include "core/run/replica_pool.hpp"
#include "core/value/variable.hpp"

namespace dist {
namespace {

using Tensors = std::pmr::vector<dist_tensor>;

// The leaves of a nest, from left to right, and a signature of its structure.
uint64_t flatten(const Value& value, int32_t replica, Tensors& leaves, uint64_t signature) {
  signature = mix(signature, static_cast<uint64_t>(value.is_list_or_dict() ? value.kind() : 0));
  if (!value.is_list_or_dict()) {
    leaves.push_back(value.variable() != nullptr ? value.variable()->component(replica) : value.tensor());
    return signature;
  }
  const auto items = value.items();
  signature = mix(signature, items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (value.kind() == DIST_VALUE_DICT) {
      for (const char* c = value.key(i); *c != '\0'; ++c)
        signature = mix(signature, static_cast<uint8_t>(*c));
    }
    signature = flatten(*items[i], replica, leaves, signature);
  }
  return signature;
}

// The same nest with other leaves; `next` walks through them.
Status rebuild(Memory& memory, const Value& like, const std::pmr::vector<ValueRef>& leaves, std::size_t& next,
               ValueRef* out) {
  if (!like.is_list_or_dict()) {
    *out = leaves[next++];
    return kOk;
  }
  const auto items = like.items();
  const bool keyed = like.kind() == DIST_VALUE_DICT;
  std::pmr::vector<ValueRef> rebuilt(items.size(), &memory);
  std::pmr::vector<Value*> pointers(items.size(), &memory);
  std::pmr::vector<const char*> keys(keyed ? items.size() : 0, &memory);
  for (std::size_t i = 0; i < items.size(); ++i) {
    DIST_TRY(rebuild(memory, *items[i], leaves, next, &rebuilt[i]));
    pointers[i] = rebuilt[i].get();
    if (keyed) keys[i] = like.key(i);
  }
  return keyed ? Value::create_dict(memory, keys, pointers, out)
               : Value::create(memory, DIST_VALUE_LIST, pointers, out);
}

Status check_axis(const Call& call, const Tensors& leaves) noexcept {
  for (std::size_t t = 0; t < leaves.size(); ++t) {
    if (call.axis >= -leaves[t].ndim && call.axis < leaves[t].ndim) continue;
    return invalid_argument("axis is %d, and leaf %zu of the value has %d dimensions", call.axis, t,
                            leaves[t].ndim);
  }
  return kOk;
}

// all_gather: the members' sizes along the axis, added up leaf by leaf. A meeting of its own, since results
// must be allocated before the tensors meet.
Status gather_sizes(const Caller& caller, const Call& call, const Tensors& leaves,
                    std::pmr::vector<int64_t>& sizes) {
  for (std::size_t t = 0; t < leaves.size(); ++t) {
    const int32_t axis = call.axis < 0 ? call.axis + leaves[t].ndim : call.axis;
    sizes[t] = leaves[t].shape[axis];
  }
  const auto n = static_cast<int64_t>(leaves.size());
  dist_tensor tensor{sizes.data(), DIST_I64, 1, &n, nullptr};
  Call add;
  add.collective = Collective::kAllReduce;
  add.op = DIST_REDUCE_SUM;
  add.in = add.out = &tensor;
  add.n = 1;
  add.salt = call.salt;
  return collective(caller, add);
}

}  // namespace

Status exchange_values(Replica& replica, const Caller& caller, Call call, Value& value, ValueRef* out) {
  Memory& memory = replica.pool().memory();
  ValueRef own;
  DIST_TRY(component_of(memory, &value, replica.id(), &own));
  Tensors leaves(&memory);
  call.salt = flatten(*own, replica.id(), leaves, 1);
  std::pmr::vector<int64_t> sizes(leaves.size(), 0, &memory);
  if (call.joins()) {
    DIST_TRY(check_axis(call, leaves));
    DIST_TRY(gather_sizes(caller, call, leaves, sizes));
  }
  std::pmr::vector<ValueRef> results(leaves.size(), &memory);
  Tensors outputs(&memory);
  for (std::size_t t = 0; t < leaves.size(); ++t) {
    int64_t shape[DIST_MAX_NDIM];
    std::copy_n(leaves[t].shape, leaves[t].ndim, shape);
    if (call.joins()) shape[call.axis < 0 ? call.axis + leaves[t].ndim : call.axis] = sizes[t];
    const dist_tensor wanted{nullptr, call.out_dtype(leaves[t].dtype), leaves[t].ndim, shape, nullptr};
    DIST_TRY(Value::copy_tensor(memory, wanted, &results[t]));
    outputs.push_back(results[t]->tensor());
  }
  call.in = leaves.data();
  call.out = outputs.data();
  call.n = leaves.size();
  DIST_TRY(collective(caller, call));
  std::size_t next = 0;
  return rebuild(memory, *own, results, next, out);
}

}  // namespace dist
