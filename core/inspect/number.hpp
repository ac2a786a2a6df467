// SPDX-License-Identifier: Apache-2.0
// One element as text: the shortest text that reads back as the same bits, in every locale.
#pragma once

#include <cstddef>

#include "dist/types.h"

namespace dist {

// Room for any element and the end: "-1.7976931348623157e+308", twice and an "i" for complex64.
inline constexpr std::size_t kNumberRoom = 64;

// 1, -0.5, 1e-07, nan, -inf, true, 1-2i.
void write_number(dist_dtype dtype, const void* element, char (&text)[kNumberRoom]) noexcept;

}  // namespace dist
