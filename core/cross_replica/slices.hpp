// SPDX-License-Identifier: Apache-2.0
// Concatenates the indexed slices of all replicas.
#pragma once

#include <span>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/cross_replica/fold.hpp"
#include "core/value/path.hpp"
#include "core/value/value.hpp"

namespace dist {

// The replicas' rows and indices one after another, in the order of ids: an index that several have comes
// several times. MEAN divides the rows by the number of replicas; they are set after plan.run(). The dense
// shape is replica 0's.
Status join_slices(const CrossReplica& context, FoldPlan& plan, dist_reduce_op op,
                   std::span<Value* const> slices, const Path& path, ValueRef* out);

}  // namespace dist
