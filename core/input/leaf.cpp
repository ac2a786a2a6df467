// SPDX-License-Identifier: Apache-2.0
#include "core/input/leaf.hpp"

#include <algorithm>
#include <vector>

#include "core/input/partial_batch.hpp"

namespace dist {

Status allocate_leaf(Memory& memory, int32_t num_replicas, int64_t rows, const dist_tensor& row,
                     ValueRef* out) {
  if (row.ndim >= DIST_MAX_NDIM) {
    return invalid_argument(
        "an element of %d dimensions cannot be put in a batch: with the batch's own there would be "
        "more than %d",
        row.ndim, DIST_MAX_NDIM);
  }
  int64_t shape[DIST_MAX_NDIM];
  std::copy_n(row.shape, row.ndim, shape + 1);
  dist_tensor tensor{nullptr, row.dtype, row.ndim + 1, shape, nullptr};
  if (num_replicas == 1) {
    shape[0] = rows;
    return Value::copy_tensor(memory, tensor, out);
  }
  std::pmr::vector<ValueRef> parts(static_cast<std::size_t>(num_replicas), &memory);
  std::pmr::vector<Value*> items(parts.size(), &memory);
  for (int32_t replica = 0; replica < num_replicas; ++replica) {
    const auto at = static_cast<std::size_t>(replica);
    shape[0] = part_of(rows, num_replicas, replica).count;
    DIST_TRY(Value::copy_tensor(memory, tensor, &parts[at]));
    items[at] = parts[at].get();
  }
  return Value::create(memory, DIST_VALUE_PER_REPLICA, items, out);
}

}  // namespace dist
