// SPDX-License-Identifier: Apache-2.0
// Composite values: several tensors that form one object (indexed slices, a ragged tensor, a sparse tensor).
// Merging and taking components treat them as a whole and never look inside.
#pragma once

#include "core/value/value.hpp"

namespace dist {

// Creates a composite from its parts, in the order documented for DIST_VALUE_INDEXED_SLICES and the other
// kinds. Checks that the parts fit together, so functions that read a composite need not check it again.
Status create_composite(Memory& memory, dist_value_kind kind, std::span<Value* const> parts, ValueRef* out);

}  // namespace dist
