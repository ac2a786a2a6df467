// SPDX-License-Identifier: Apache-2.0
// Reductions and broadcasts in the cross-replica context, to a tensor or to a destination: reduce, reduce_to,
// batch_reduce_to and broadcast_to of tf.distribute, and the same operations of cross-device objects without
// a strategy.
//
// The calling thread does the work with the help of oneTBB; no group takes part.
//
// Invariant: the arithmetic is the same as in the collectives, so the bits are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/cross_replica/destination.hpp"
#include "core/cross_replica/reducer.hpp"
#include "core/value/value.hpp"

namespace dist {

// Reduces to one tensor, leaf by leaf, over the replicas and `axes`, which may be empty. See dist_reduce().
Status reduce(const CrossReplica& context, dist_reduce_op op, Value& value, std::span<const int32_t> axes,
              ValueRef* out);

// outs[k] = values[k], reduced to destinations[k], all in one pass. `destinations` is empty (every replica)
// or has the length of `values`. On failure, nothing is written. See dist_reduce_to().
Status reduce_to(const CrossReplica& context, ReduceRules rules, dist_reduce_op op,
                 std::span<Value* const> values, std::span<const Destination> destinations,
                 std::span<ValueRef> outs);

// Places `value` at `destination`. A value that is already distributed is returned as it is. See
// dist_broadcast_to().
Status broadcast_to(const CrossReplica& context, Value& value, const Destination& destination, ValueRef* out);

// The number of replicas for values that are reduced without a strategy: that of the components of the first
// distributed value, otherwise that of the first distributed destination, otherwise 1.
int32_t replicas_of(std::span<Value* const> values, std::span<const Destination> destinations) noexcept;

}  // namespace dist
