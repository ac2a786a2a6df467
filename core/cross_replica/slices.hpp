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

// Concatenates the replicas' rows and indices in the order of ids. An index that several replicas have
// therefore occurs several times. MEAN divides the rows by the number of replicas. plan.run() sets the rows.
// The dense shape is that of replica 0.
Status join_slices(const CrossReplica& context, FoldPlan& plan, dist_reduce_op op,
                   std::span<Value* const> slices, const Path& path, ValueRef* out);

}  // namespace dist
