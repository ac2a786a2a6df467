// SPDX-License-Identifier: Apache-2.0
// A leaf of a batch: rows of one dtype and shape, split over the replicas. Rows are written once, straight
// into the tensor of the replica that gets them: there is never a whole batch to cut up.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/value/value.hpp"

namespace dist {

// A per-replica value of R tensors (one replica: a tensor) for `rows` rows of `row`'s dtype and shape. What
// is in them is not set yet; row.data and row.strides do not matter.
Status allocate_leaf(Memory& memory, int32_t num_replicas, int64_t rows, const dist_tensor& row,
                     ValueRef* out);

// allocate_leaf(), then write(data, first, count) for each replica that has rows: its rows are first ..
// first+count-1.
template <class Write>
Status make_leaf(Memory& memory, int32_t num_replicas, int64_t rows, const dist_tensor& row,
                 const Write& write, ValueRef* out) {
  ValueRef leaf;
  DIST_TRY(allocate_leaf(memory, num_replicas, rows, row, &leaf));
  int64_t first = 0;
  const auto write_part = [&](const Value& part) {
    const dist_tensor tensor = part.tensor();
    const int64_t count = tensor.shape[0];
    if (count != 0) write(static_cast<std::byte*>(tensor.data), first, count);
    first += count;
  };
  if (leaf->kind() == DIST_VALUE_TENSOR) {
    write_part(*leaf);
  } else {
    for (const ValueRef& part : leaf->items()) write_part(*part);
  }
  *out = std::move(leaf);
  return kOk;
}

}  // namespace dist
