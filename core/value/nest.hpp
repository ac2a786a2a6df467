// SPDX-License-Identifier: Apache-2.0
// Nests of values, item by item.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <vector>

#include "core/base/status.hpp"
#include "core/value/path.hpp"
#include "core/value/value.hpp"

namespace dist {

// A nest like `nest`, of what each(item, its path, out) makes of the items.
template <class Each>
Status map_items(Memory& memory, Value& nest, const Path& path, Each&& each, ValueRef* out) {
  const auto items = nest.items();
  std::pmr::vector<ValueRef> made(items.size(), &memory);
  std::pmr::vector<Value*> pointers(items.size(), &memory);
  const bool keyed = nest.kind() == DIST_VALUE_DICT;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Path here = keyed ? Path::item(path, nest.key(i)) : Path::item(path, i);
    DIST_TRY(each(*items[i], here, &made[i]));
    pointers[i] = made[i].get();
  }
  return Value::create_like(memory, nest, pointers, out);
}

}  // namespace dist
