// SPDX-License-Identifier: Apache-2.0
// Tensors that are divided over the logical devices of a replica. A whole tensor is divided into shards,
// which are views of it, and shards are joined into a whole.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/arena.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/layout/partition.hpp"
#include "core/value/value.hpp"

namespace dist {

// Returns replica `replica`'s view of `value`, in which each tensor is divided according to `how`. The shape
// in `how` is replaced by that of the tensor. A divided tensor becomes a sharded tensor, which still contains
// the whole; nothing is copied. A sharded tensor is divided again.
Status divide(Memory& memory, Value& value, LocalReplica replica, const Partition& how, ValueRef* out);

// Creates a view of a part of the tensor `whole`. The view keeps `whole` alive.
Status view_of(Memory& memory, Value& whole, const int64_t* begin, const int64_t* size, ValueRef* out);

// Returns a logical device's view of a value: the device's shards of sharded tensors, or "nothing" for a
// tensor of which it has none. Parts without sharded tensors stay the same objects. NULL stays NULL.
Status shard_of(Memory& memory, Value* value, int32_t logical_device, ValueRef* out);

// Returns OK if the value is a sharded tensor. `call` is the function's name for messages.
Status check_sharded(const Value& value, const char* call) noexcept;
// How a sharded tensor is divided, including whether it is uneven. Shape and dimensions point into the value.
Partition partition_of(const Value& sharded) noexcept;
// A logical device's shard of a sharded tensor. Fails with NOT_FOUND if it has none.
Status find_shard(const Value& sharded, int32_t logical_device, const char* call, const Value** out) noexcept;

// Returns the first split tensor in `value`, or NULL.
const Sharding* find_split(const Value* value) noexcept;

// How the results of the devices are joined.
struct Joining {
  // One partition for all leaves, or one for each leaf in order. If a leaf has no partition, or its pointer
  // is NULL, the leaf is joined like `like`, or by the rules of join().
  std::span<const Partition* const> partitions;
  const Sharding* like = nullptr;  // a split; NULL: none
};

// Combines the results of a replica's devices into one value of sharded tensors. Elements are copied in
// `arena`. If a leaf has no partition, its result depends on what the devices returned:
//
//     all returned the same object   that object
//     one returned a tensor          assigned to that device
//     tensors that tile as `like`    split
//     equal tensors                  replicated
Status join(Memory& memory, Arena& arena, std::span<Value* const> results, const Joining& how, ValueRef* out);

}  // namespace dist
