// SPDX-License-Identifier: Apache-2.0
// A leaf of a batch: rows of one dtype and shape, split over the replicas. Each row is written once, into the
// tensor of the replica that gets it; no whole batch is made and cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/input/partial_batch.hpp"
#include "core/value/value.hpp"

namespace dist {

// Which rows of a batch each replica gets. Some rows may go to no replica.
using Parts = std::span<const Part>;

// Makes a per-replica value of R tensors (a tensor for one replica) of `row`'s dtype and shape, with as many
// rows as each replica's part has. Their elements are not set yet; row.data and row.strides are not used.
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
