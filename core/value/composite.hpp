// SPDX-License-Identifier: Apache-2.0
// Composite values: several tensors that form one object (indexed slices, a ragged tensor, a sparse tensor).
// Merging and taking components treat them as a whole and never look inside.
#pragma once

#include "core/value/value.hpp"

namespace dist {

// Makes a composite of its parts, in the order that DIST_VALUE_INDEXED_SLICES and the other kinds state. The
// parts are checked to fit each other, so that readers of a composite need not check.
Status create_composite(Memory& memory, int32_t kind, std::span<Value* const> parts, ValueRef* out);

}  // namespace dist
