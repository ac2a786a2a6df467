// SPDX-License-Identifier: Apache-2.0
// A single element as text: the shortest text that reads back as the same bits, in every locale.
#pragma once

#include <cstddef>

#include "dist/types.h"

namespace dist {

// Fits any element and the NUL: "-1.7976931348623157e+308" twice, and an "i" for complex64.
inline constexpr std::size_t kNumberRoom = 64;

// For example 1, -0.5, 1e-07, nan, -inf, true, 1-2i.
void write_number(dist_dtype dtype, const void* element, char (&text)[kNumberRoom]) noexcept;

}  // namespace dist
