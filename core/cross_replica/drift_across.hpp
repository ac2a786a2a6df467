// SPDX-License-Identifier: Apache-2.0
// Finds the first difference between the copies of a variable on several workers, without sending the copies.
//
// First, all workers exchange a digest of one copy, and the first difference between their own copies. If the
// digests differ, they exchange digests of kRanges ranges before the known difference and repeat this for the
// first differing range, until a range is a single element. The amount of data does not depend on the size of
// the variable.
#pragma once

#include <cstdint>

#include "core/cross_replica/across_workers.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/cross_replica/drift_copies.hpp"

namespace dist {

// `first_here`: the first element in which the copies of this worker differ, or the number of elements. *out
// receives the first element in which any copies of the workers differ, or the number of elements; it is the
// same on all workers. All workers must call this for the same variable, otherwise it fails.
Status first_difference_across(const CrossReplica& context, const Variable& variable, int64_t first_here,
                               int64_t* out);
// For a variable that is not compared: only checks that all workers call this for the same variable.
Status agree_on_none(const CrossReplica& context, const Variable& variable);

}  // namespace dist
