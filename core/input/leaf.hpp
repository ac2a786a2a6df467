// SPDX-License-Identifier: Apache-2.0
// A leaf of a batch: rows of one dtype and shape, split over the replicas. Each row is written once, directly
// into the tensor of its replica, and the whole batch is never assembled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/input/partial_batch.hpp"
#include "core/value/value.hpp"

namespace dist {

// The rows of a batch that each replica gets. Some rows may go to no replica.
using Parts = std::span<const Part>;

// Creates a per-replica value of R tensors, or a plain tensor if there is only one replica, with the dtype
// and shape of `row`, and as many rows as each part has. The elements are not initialized. row.data and
// row.strides are not used.
Status allocate_leaf(Memory& memory, Parts parts, const dist_tensor& row, ValueRef* out);

// Combines the components. A single one is returned unchanged.
Status join_parts(Memory& memory, std::span<const ValueRef> components, ValueRef* out);

// Calls allocate_leaf(), then write(data, part) for each replica that has rows.
template <class Write>
Status make_leaf(Memory& memory, Parts parts, const dist_tensor& row, const Write& write, ValueRef* out) {
  ValueRef leaf;
  DIST_TRY(allocate_leaf(memory, parts, row, &leaf));
  for (std::size_t r = 0; r < parts.size(); ++r) {
    if (parts[r].count == 0) continue;
    const Value& part = parts.size() == 1 ? *leaf : *leaf->items()[r];
    write(static_cast<std::byte*>(part.tensor().data), parts[r]);
  }
  *out = std::move(leaf);
  return kOk;
}

}  // namespace dist
