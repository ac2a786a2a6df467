// SPDX-License-Identifier: Apache-2.0
#include "core/input/deal.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/input/composite_rows.hpp"

namespace dist {
namespace {

using Components = std::span<Value* const>;

// A list of texts or objects is a batch of them, and therefore a leaf.
bool is_batch_of_handles(const Value& value) noexcept {
  if (value.kind() != DIST_VALUE_LIST || value.items().empty()) return false;
  return std::all_of(value.items().begin(), value.items().end(), [](const ValueRef& item) {
    return item->kind() == DIST_VALUE_TEXT || item->kind() == DIST_VALUE_OBJECT;
  });
}

bool same_structure(const Value& a, const Value& b) noexcept {
  if (a.kind() != b.kind() || a.items().size() != b.items().size()) return false;
  for (std::size_t i = 0; a.kind() == DIST_VALUE_DICT && i < a.items().size(); ++i) {
    if (std::strcmp(a.key(i), b.key(i)) != 0) return false;
  }
  return true;
}

Status join_items(Memory& memory, Components components, ValueRef* out) {
  const Value& model = *components[0];
  const std::size_t n = model.items().size();
  std::pmr::vector<Value*> column(components.size(), &memory);
  std::pmr::vector<ValueRef> joined(n, &memory);
  std::pmr::vector<Value*> items(n, &memory);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t r = 0; r < components.size(); ++r) column[r] = components[r]->items()[i].get();
    DIST_TRY(join_components(memory, column, &joined[i]));
    items[i] = joined[i].get();
  }
  return Value::create_like(memory, model, items, out);
}

// Stores NULL if an item cannot be empty.
Status empty_items(Memory& memory, Value& model, ValueRef* out) {
  const std::size_t n = model.items().size();
  std::pmr::vector<ValueRef> empty(n, &memory);
  std::pmr::vector<Value*> items(n, &memory);
  for (std::size_t i = 0; i < n; ++i) {
    DIST_TRY(empty_like(memory, *model.items()[i], &empty[i]));
    if (!empty[i]) return kOk;
    items[i] = empty[i].get();
  }
  return Value::create_like(memory, model, items, out);
}

}  // namespace

Status join_components(Memory& memory, Components components, ValueRef* out) {
  Value& model = *components[0];
  if (components.size() == 1) {
    *out = ValueRef::share(&model);
    return kOk;
  }
  const bool nest = std::all_of(components.begin(), components.end(), [&](const Value* other) {
    return other->is_nest() && !is_batch_of_handles(*other) && same_structure(model, *other);
  });
  return nest ? join_items(memory, components, out)
              : Value::create(memory, DIST_VALUE_PER_REPLICA, components, out);
}

Status empty_like(Memory& memory, Value& model, ValueRef* out) {
  switch (model.kind()) {
    case DIST_VALUE_NONE: *out = ValueRef::share(&model); return kOk;
    case DIST_VALUE_RAGGED:
    case DIST_VALUE_SPARSE: return cut_composite(memory, model, 0, 0, out);
    case DIST_VALUE_TENSOR: {
      const dist_tensor tensor = model.tensor();
      if (tensor.ndim == 0) return kOk;
      int64_t shape[DIST_MAX_NDIM];
      std::copy_n(tensor.shape, tensor.ndim, shape);
      shape[0] = 0;
      return Value::copy_tensor(memory, {nullptr, tensor.dtype, tensor.ndim, shape, nullptr}, out);
    }
    default: break;
  }
  if (is_batch_of_handles(model)) return Value::create(memory, DIST_VALUE_LIST, {}, out);
  if (!model.is_nest() && !model.distributed()) return kOk;
  return empty_items(memory, model, out);
}

}  // namespace dist
