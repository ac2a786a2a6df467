// SPDX-License-Identifier: Apache-2.0
// A leaf of a batch: rows of one dtype and shape, split over the replicas. Rows are written once, straight
// into the tensor of the replica that gets them: there is never a whole batch to cut up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/input/partial_batch.hpp"
#include "core/value/value.hpp"

namespace dist {

// Which rows of a batch each replica gets; one replica's own where there is one. Not all need be given away.
using Parts = std::span<const Part>;

// A per-replica value of R tensors (one replica: a tensor) of `row`'s dtype and shape, as many rows each as
// its part has. What is in them is not set yet; row.data and row.strides do not matter.
Status allocate_leaf(Memory& memory, Parts parts, const dist_tensor& row, ValueRef* out);

// The components together: one replica's is given as it is.
Status join_parts(Memory& memory, std::span<const ValueRef> components, ValueRef* out);

// allocate_leaf(), then write(data, part) for each replica that has rows.
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
