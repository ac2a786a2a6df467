// SPDX-License-Identifier: Apache-2.0
// Exact sums, one element at a time, for any contributions. This is the reference for all SIMD targets, and
// it sums the few elements that the lanes of a target cannot.
#pragma once

#include <cstdint>

#include "core/kernel/exact.hpp"

namespace dist {

// Returns NULL for all dtypes except f16, bf16, f32 and f64.
ExactKernel scalar_exact_kernel(dist_dtype dtype) noexcept;

// Returns the bits of element i of the result, in the lowest bits of the 64.
using ExactElement = uint64_t (*)(const ExactArguments&, std::size_t i) noexcept;
ExactElement scalar_exact_element(dist_dtype dtype) noexcept;

}  // namespace dist
