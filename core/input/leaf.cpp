// SPDX-License-Identifier: Apache-2.0
#include "core/input/leaf.hpp"

#include <algorithm>
#include <vector>

namespace dist {

Status allocate_leaf(Memory& memory, Parts parts, const dist_tensor& row, ValueRef* out) {
  if (row.ndim >= DIST_MAX_NDIM) {
    return invalid_argument(
        "an element of %d dimensions cannot be put in a batch, which would have more than %d dimensions",
        row.ndim, DIST_MAX_NDIM);
  }
  int64_t shape[DIST_MAX_NDIM];
  std::copy_n(row.shape, row.ndim, shape + 1);
  const dist_tensor tensor{nullptr, row.dtype, row.ndim + 1, shape, nullptr};
  std::pmr::vector<ValueRef> components(parts.size(), &memory);
  for (std::size_t r = 0; r < parts.size(); ++r) {
    shape[0] = parts[r].count;
    DIST_TRY(Value::copy_tensor(memory, tensor, &components[r]));
  }
  return join_parts(memory, components, out);
}

Status join_parts(Memory& memory, std::span<const ValueRef> components, ValueRef* out) {
  if (components.size() == 1) {
    *out = components[0];
    return kOk;
  }
  std::pmr::vector<Value*> items(&memory);
  items.reserve(components.size());
  for (const ValueRef& component : components) items.push_back(component.get());
  return Value::create(memory, DIST_VALUE_PER_REPLICA, items, out);
}

}  // namespace dist
