// SPDX-License-Identifier: Apache-2.0
// Reductions to a place, and broadcasts: tf.distribute's reduce_to, batch_reduce_to, broadcast_to, and the
// same of cross-device operations without a strategy.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/cross_replica/destination.hpp"
#include "core/value/value.hpp"

namespace dist {

// What differs between the callers, all of them TensorFlow's rules.
enum class ReduceRules {
  kReduceTo,  // what is not distributed has a mean but no sum; a host's operator is not asked
  kBatch,     // a host's operator is; on central storage what is not distributed is one contribution
  kAlone      // a host's operator is; what is not distributed is one contribution
};

// outs[k] = values[k], reduced to destinations[k]; all in one pass. `destinations` is empty (every replica)
// or as long as `values`. Nothing is written on a failure. See dist_reduce_to().
Status reduce_to(const CrossReplica& context, ReduceRules rules, dist_reduce_op op,
                 std::span<Value* const> values, std::span<const Destination> destinations,
                 std::span<ValueRef> outs);

// `value` at `destination`: what is distributed already stays as it is. See dist_broadcast_to().
Status broadcast_to(const CrossReplica& context, Value& value, const Destination& destination, ValueRef* out);

// How many replicas values reduced without a strategy are of: the components of the first that is
// distributed, else of the first destination; 1 where none is.
int32_t replicas_of(std::span<Value* const> values, std::span<const Destination> destinations) noexcept;

}  // namespace dist
