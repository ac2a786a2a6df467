// SPDX-License-Identifier: Apache-2.0
// Tensors that are divided over the logical devices of a replica. A whole tensor is divided into shards,
// which are views of it, and shards are joined into a whole.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/arena.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/topology/partition.hpp"
#include "core/value/value.hpp"

namespace dist {

// `value` as replica `replica` sees it, with each tensor in it divided as `how` says, whose shape is taken
// from the tensor. A divided tensor is a sharded tensor, which still is the whole; nothing is copied. A
// sharded tensor is divided anew.
Status divide(Memory& memory, Value& value, LocalReplica replica, const Partition& how, ValueRef* out);

// A view of a part of the tensor `whole`, which it keeps alive.
Status view_of(Memory& memory, Value& whole, const int64_t* begin, const int64_t* size, ValueRef* out);

// What a logical device sees of a value: its shards of sharded tensors, nothing where it has none; parts
// without one are the same objects. NULL stays NULL.
Status shard_of(Memory& memory, Value* value, int32_t logical_device, ValueRef* out);

// OK where the value is a sharded tensor. `call` is the function's name in messages.
Status check_sharded(const Value& value, const char* call) noexcept;
// How a sharded tensor is divided: `uneven` says whether it is. The shape and dimensions are the value's.
Partition partition_of(const Value& sharded) noexcept;
// What a logical device has of a sharded tensor; NOT_FOUND where that is nothing.
Status find_shard(const Value& sharded, int32_t logical_device, const char* call, const Value** out) noexcept;

// The first tensor in `value` that is split; NULL: there is none.
const Sharding* find_split(const Value* value) noexcept;

// How the results of the devices are joined.
struct Joining {
  // One partition for all leaves, or one for each leaf in order. Where there is none, or it is NULL, the leaf
  // is joined by `like`, or by what fits.
  std::span<const Partition* const> partitions;
  const Sharding* like = nullptr;  // a split; NULL: there is none
};

// Makes one value, of sharded tensors, of what the devices of a replica gave. Elements are copied in `arena`.
// Unless a partition is given, the result of a leaf depends on what the devices gave:
//
//     all gave the same object       that
//     one gave a tensor              assigned to it
//     tensors that tile as `like`    split
//     equal tensors                  replicated
Status join(Memory& memory, Arena& arena, std::span<Value* const> results, const Joining& how, ValueRef* out);

}  // namespace dist
