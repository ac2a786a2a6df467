// SPDX-License-Identifier: Apache-2.0
// Where the copies of a variable begin to differ that several workers have: what they tell each other of it.
//
// First all bring one digest of a copy, and where their own copies differ. Where that tells of a difference, they bring
// digests of kRanges ranges in front of the one that is known, and of the first range that differs again, until a range
// is one element. So much goes from worker to worker for a variable of any size.
#pragma once

#include <cstdint>

#include "core/cross_replica/across_workers.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/inspect/copies.hpp"

namespace dist {

// `first_here`: the first element in which copies of this worker differ, or how many elements there are. *out is the same
// of the copies of all workers, and on all of them. All make the same call; those with another variable are told so.
Status first_difference_across(const CrossReplica& context, const Variable& variable, int64_t first_here,
                               int64_t* out);
// Of a variable of which nothing is compared: only whether all workers ask for the same one.
Status agree_on_none(const CrossReplica& context, const Variable& variable);

}  // namespace dist
