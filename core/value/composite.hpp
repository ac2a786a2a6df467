// SPDX-License-Identifier: Apache-2.0
// Composite values: one thing made of several tensors (indexed slices, a ragged tensor, a sparse tensor).
// They travel whole: merging and taking components never look inside.
#pragma once

#include "core/value/value.hpp"

namespace dist {

// Of the parts in the order that DIST_VALUE_INDEXED_SLICES and its like name; checked to fit each other, so
// that what reads a composite later need not.
Status create_composite(Memory& memory, int32_t kind, std::span<Value* const> parts, ValueRef* out);

}  // namespace dist
