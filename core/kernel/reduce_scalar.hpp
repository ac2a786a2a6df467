// SPDX-License-Identifier: Apache-2.0
// The reference kernels: the loops of reduce.hpp in plain C++. Every SIMD target must produce the same
// results. They also run on CPUs for which the build has no SIMD target.
#pragma once

#include "core/kernel/reduce.hpp"

namespace dist {

// NULL for a pair that check_op() rejects.
ReduceKernel scalar_reduce_kernel(dist_dtype dtype, dist_reduce_op op) noexcept;

// The reference for tree.hpp, for dtypes for which depends_on_order() is true; otherwise NULL.
ReduceKernel scalar_tree_kernel(dist_dtype dtype, dist_reduce_op op) noexcept;

}  // namespace dist
