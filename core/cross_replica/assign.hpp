// SPDX-License-Identifier: Apache-2.0
// Variables from outside the replicas: assigned, read and scattered to, by TensorFlow's rules. The merged_
// functions are the second half of what replicas do together: they take what all of them gave, merged.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// A tensor to every copy, components each to their own; of a variable synchronized on reading, so that a read
// gives the value. Nothing is written where anything does not fit.
Status assign(const CrossReplica& context, Variable& variable, int32_t how, Value& value);

// All copies of a variable from the first, which has the whole of a sum: parts that a read adds to the whole
// again. Equal parts; of integers the first copies have one more where it does not come out even. Nothing is
// allocated, so that it cannot fail.
void share_sum(Variable& variable) noexcept;

// What the variable is, seen from outside: a new tensor.
Status read(const CrossReplica& context, Variable& variable, ValueRef* out);

// Rows to every copy, components each to their own.
Status scatter(const CrossReplica& context, Variable& variable, int32_t how, Value& slices);

// By the variable's aggregation: a per-replica value is reduced, and the result goes to every copy. Where all
// replicas gave one object it is what they have in common, of which there is a mean but no sum.
Status merged_assign(const CrossReplica& context, Variable& variable, int32_t how, Value& merged);
Status merged_scatter(const CrossReplica& context, Variable& variable, int32_t how, Value& merged);

}  // namespace dist
