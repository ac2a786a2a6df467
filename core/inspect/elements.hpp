// SPDX-License-Identifier: Apache-2.0
// What counts as equal of two elements of copies: their bits. But every NaN equals every NaN, and every true bool every
// true one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dist/types.h"

namespace dist {

bool same_element(dist_dtype dtype, const std::byte* a, const std::byte* b) noexcept;

// Of `count` elements in a row, so that workers need not send them. Where each is the same as the other's, digests are
// equal. Where one is not they differ: always if there is one element, else but for a chance of one in 2^64.
uint64_t digest_elements(dist_dtype dtype, const std::byte* elements, int64_t count) noexcept;

}  // namespace dist
