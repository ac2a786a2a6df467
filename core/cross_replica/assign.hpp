// SPDX-License-Identifier: Apache-2.0
// Assigns, reads and scatters to variables in the cross-replica context, by TensorFlow's rules. The merged_
// functions are the second half of an operation that all replicas make: they take the merged arguments of all
// replicas.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// Assigns a tensor to every copy, or component r to copy r. A sync-on-read variable is assigned such that a
// read returns the value. If anything does not fit, nothing is written.
Status assign(const CrossReplica& context, Variable& variable, int32_t how, Value& value);

// Sets all copies from the first one, which holds the whole. The copies of a sum become parts that add up to
// the whole again when it is read: equal parts, except that the first copies of an integer get one more if it
// is not divisible. Allocates nothing and cannot fail.
void share_sum(const ReplicaCount& replicas, Variable& variable) noexcept;

// The variable's value in the cross-replica context, as a new tensor.
Status read(const CrossReplica& context, Variable& variable, ValueRef* out);

// Applies rows to every copy, or component r to copy r.
Status scatter(const CrossReplica& context, Variable& variable, int32_t how, Value& slices);

// Reduces a per-replica value by the variable's aggregation and assigns the result to every copy. An object
// that all replicas passed is their common value, which has a mean but no sum.
Status merged_assign(const CrossReplica& context, Variable& variable, int32_t how, Value& merged);
Status merged_scatter(const CrossReplica& context, Variable& variable, int32_t how, Value& merged);

}  // namespace dist
