// SPDX-License-Identifier: Apache-2.0
// Element-wise quotients for each dtype, as plain loops. No reduction divides element by element, so the
// reduction kernels have no quotient.
#pragma once

#include <cstddef>

#include "dist/types.h"

namespace dist {

// to[i] = a[i] / b[i] for `count` elements; `to` may be a or b. f16 and bf16 divide in f32 and round once,
// complex64 divides in f64. Integers truncate and wrap; the caller ensures that no integer b[i] is 0. Not for
// bool.
void divide(dist_dtype dtype, const std::byte* a, const std::byte* b, std::byte* to,
            std::size_t count) noexcept;

// Whether the elements are integers and one of them is 0.
bool holds_zero_integer(dist_dtype dtype, const std::byte* data, std::size_t count) noexcept;

// Divides integers into `parts` parts and writes part `part`. The sum of all parts is exactly the whole: if
// it is not divisible, the first parts get one more (negative: one less). `to` may be `whole`.
void share_integers(dist_dtype dtype, const std::byte* whole, int part, int parts, std::byte* to,
                    std::size_t count) noexcept;

}  // namespace dist
