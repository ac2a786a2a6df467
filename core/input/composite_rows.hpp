// SPDX-License-Identifier: Apache-2.0
// Rows of ragged and sparse tensors, which have the part of a tensor's first dimension in a batch.
#pragma once

#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/value/value.hpp"

namespace dist {

// How many rows a ragged or sparse tensor has.
int64_t composite_rows(const Value& composite) noexcept;

// Rows first .. first+count-1 as a composite of the same kind.
Status cut_composite(Memory& memory, const Value& composite, int64_t first, int64_t count, ValueRef* out);

}  // namespace dist
