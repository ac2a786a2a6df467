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

// Assigns a tensor to every copy, or component r to copy r. A variable that is synchronized on reading is
// assigned so that a read gives the value. Nothing is written where anything does not fit.
Status assign(const CrossReplica& context, Variable& variable, int32_t how, Value& value);

// Sets all copies from the first, which holds the whole. The copies of a sum become parts that a read adds up
// to the whole again: equal parts of all replicas, but the first copies of an integer have one more where it does not divide.
// Nothing is allocated, so that this cannot fail.
void share_sum(const ReplicaCount& replicas, Variable& variable) noexcept;

// The value of the variable in the cross-replica context, as a new tensor.
Status read(const CrossReplica& context, Variable& variable, ValueRef* out);

// Applies rows to every copy, or component r to copy r.
Status scatter(const CrossReplica& context, Variable& variable, int32_t how, Value& slices);

// Reduces a per-replica value by the variable's aggregation and gives the result to every copy. An object
// that all replicas gave is their common value, which has a mean but no sum.
Status merged_assign(const CrossReplica& context, Variable& variable, int32_t how, Value& merged);
Status merged_scatter(const CrossReplica& context, Variable& variable, int32_t how, Value& merged);

}  // namespace dist
