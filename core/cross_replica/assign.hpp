// SPDX-License-Identifier: Apache-2.0
// Assigns, reads and scatters to variables in the cross-replica context, by TensorFlow's rules. The merged_
// functions are the second half of an operation in which all replicas take part: they receive the merged
// arguments of all replicas.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// Assigns a tensor to every copy, or component r to copy r. A sync-on-read variable receives values such that
// reading it returns the assigned one. If a component does not fit, nothing is written.
Status assign(const CrossReplica& context, Variable& variable, int32_t how, Value& value);

// Sets all copies from the first one, which contains the whole. If the variable is a sum, the copies become
// parts that add up to the whole again when it is read. The parts are equal, except that the first copies of
// an integer get one more if it is not divisible. Allocates no memory and cannot fail.
void share_sum(const ReplicaCount& replicas, Variable& variable) noexcept;

// The variable's value in the cross-replica context, as a new tensor.
Status read(const CrossReplica& context, Variable& variable, ValueRef* out);

// Applies the rows to every copy, or those of component r to copy r.
Status scatter(const CrossReplica& context, Variable& variable, int32_t how, Value& slices);

// Reduces a per-replica value by the variable's aggregation and assigns the result to every copy. If all
// replicas passed the same object, it is their common value, which has a mean but no sum.
Status merged_assign(const CrossReplica& context, Variable& variable, int32_t how, Value& merged);
Status merged_scatter(const CrossReplica& context, Variable& variable, int32_t how, Value& merged);

}  // namespace dist
