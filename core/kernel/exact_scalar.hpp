// SPDX-License-Identifier: Apache-2.0
// Exact sums one element at a time, for any contributions whatever: the reference of every SIMD target, and
// where these send the few elements that lanes cannot hold.
#pragma once

#include <cstdint>

#include "core/kernel/exact.hpp"

namespace dist {

// NULL but for f16, bf16, f32, f64.
ExactKernel scalar_exact_kernel(dist_dtype dtype) noexcept;

// The bits of element i of the result, in the lowest of the 64.
using ExactElement = uint64_t (*)(const ExactArguments&, std::size_t i) noexcept;
ExactElement scalar_exact_element(dist_dtype dtype) noexcept;

}  // namespace dist
