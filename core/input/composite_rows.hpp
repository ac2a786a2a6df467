// SPDX-License-Identifier: Apache-2.0
// The rows of ragged and sparse tensors. In a batch, they correspond to the first dimension of a tensor.
#pragma once

#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/value/value.hpp"

namespace dist {

// The number of rows.
int64_t composite_rows(const Value& composite) noexcept;

// Returns rows first .. first+count-1 as a composite of the same kind.
Status cut_composite(Memory& memory, const Value& composite, int64_t first, int64_t count, ValueRef* out);

}  // namespace dist
