// SPDX-License-Identifier: Apache-2.0
// The identity of a reduction: 0 for SUM, 1 for PROD, the largest value for MIN, the smallest for MAX.
#pragma once

#include <cstddef>

#include "dist/types.h"

namespace dist {

// check_op() must accept `dtype` and `op`.
void fill_identity(dist_dtype dtype, dist_reduce_op op, std::byte* to, std::size_t count) noexcept;

}  // namespace dist
