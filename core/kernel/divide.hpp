// SPDX-License-Identifier: Apache-2.0
// Quotients, dtype by dtype: what the reduction kernels, which fold, do not have. Plain loops.
#pragma once

#include <cstddef>

#include "dist/types.h"

namespace dist {

// to[i] = a[i] / b[i] of `count` elements; `to` may be a or b. f16 and bf16 divide in f32 and round once,
// complex64 in f64. Integers drop the fraction and wrap; the caller sees to it that no b[i] is 0 there.
// Not for bool.
void divide(dist_dtype dtype, const std::byte* a, const std::byte* b, std::byte* to,
            std::size_t count) noexcept;

// Whether an integer among the elements is 0.
bool holds_zero_integer(dist_dtype dtype, const std::byte* data, std::size_t count) noexcept;

// Part `part` of `parts` of integers, so that all parts together are exactly the whole: the first parts get
// one more where it does not come out even. `to` may be `whole`.
void share_integers(dist_dtype dtype, const std::byte* whole, int part, int parts, std::byte* to,
                    std::size_t count) noexcept;

}  // namespace dist
