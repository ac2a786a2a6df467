// SPDX-License-Identifier: Apache-2.0
// Equality of two elements: they must have the same bits, except that all NaNs are equal, and so are all
// bools that are true.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dist/types.h"

namespace dist {

bool same_element(dist_dtype dtype, const std::byte* a, const std::byte* b) noexcept;

// A digest of `count` consecutive elements, so that workers need not send the elements. Equal elements have
// equal digests. If exactly one element differs, the digests always differ; otherwise, different elements
// have equal digests with a probability of 2^-64.
uint64_t digest_elements(dist_dtype dtype, const std::byte* elements, int64_t count) noexcept;

}  // namespace dist
