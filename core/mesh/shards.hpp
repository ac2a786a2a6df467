// SPDX-License-Identifier: Apache-2.0
// Tensors divided over the logical devices of a replica: from a whole to shards, which are views of it, and
// from shards to a whole.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/arena.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/topology/partition.hpp"
#include "core/value/value.hpp"

namespace dist {

// `value` as replica `replica` sees it, each tensor in it divided as `how` says (whose shape is the
// tensor's): a sharded tensor, which still is the whole, without a copy. A sharded one is divided anew.
Status divide(Memory& memory, Value& value, int32_t replica, const Partition& how, ValueRef* out);

// A part of the tensor `whole` as a tensor: a view, which keeps it.
Status view_of(Memory& memory, Value& whole, const int64_t* begin, const int64_t* size, ValueRef* out);

// What a logical device sees of a value: its shards of sharded tensors, nothing where it has none; parts
// without one are the same objects. NULL stays NULL.
Status shard_of(Memory& memory, Value* value, int32_t device, ValueRef* out);

// OK where the value is a sharded tensor. `call` is the function's name in messages.
Status check_sharded(const Value& value, const char* call) noexcept;
// How a sharded tensor is divided: `uneven` says whether it is. The shape and dimensions are the value's.
Partition partition_of(const Value& sharded) noexcept;
// What a logical device has of a sharded tensor; NOT_FOUND where that is nothing.
Status find_shard(const Value& sharded, int32_t device, const char* call, const Value** out) noexcept;

// The first tensor in `value` that is split; NULL: there is none.
const Sharding* find_split(const Value* value) noexcept;

// How what the devices gave is put together.
struct Joining {
  // One for all leaves, or for each in their order; none, or NULL: by `like`, or whatever fits.
  std::span<const Partition* const> partitions;
  const Sharding* like = nullptr;  // a split; NULL: there is none
};

// What the devices of a replica gave as one value, of sharded tensors. `arena`: where elements are copied.
// The result of each leaf, unless a partition is given:
//
//     all gave the same object       that
//     one gave a tensor              assigned to it
//     tensors that tile as `like`    split
//     equal tensors                  replicated
Status join(Memory& memory, Arena& arena, std::span<Value* const> results, const Joining& how, ValueRef* out);

}  // namespace dist
