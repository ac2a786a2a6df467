// SPDX-License-Identifier: Apache-2.0
// The reference kernels: reduce.hpp's two loops, word for word, in plain C++. What they give is what every
// SIMD target must give; they also serve a CPU for which the build has none.
#pragma once

#include "core/kernel/reduce.hpp"

namespace dist {

// NULL for a pair that check_op() refuses.
ReduceKernel scalar_reduce_kernel(dist_dtype dtype, dist_reduce_op op) noexcept;

}  // namespace dist
