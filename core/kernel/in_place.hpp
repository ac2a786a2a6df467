// SPDX-License-Identifier: Apache-2.0
// Updates memory element by element from other memory. Assignments and row updates of variables use it.
#pragma once

#include <cstddef>

#include "dist/types.h"

namespace dist {

enum class InPlace { kReplace, kAdd, kSubtract, kMultiply, kDivide, kMin, kMax };

// to[i] = to[i] op from[i] for `count` elements, rounded to the dtype once; integers wrap. `from` may be `to`
// and must not overlap it otherwise. Except for kReplace, check_op() must accept the dtype for SUM (add,
// subtract, divide), PROD, MIN or MAX. Integer divisors must not be 0. Allocates nothing.
void in_place(InPlace op, dist_dtype dtype, std::byte* to, const std::byte* from, std::size_t count) noexcept;

}  // namespace dist
