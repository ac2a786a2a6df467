// SPDX-License-Identifier: Apache-2.0
// Walks over nests of values, item by item.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/status.hpp"
#include "core/value/path.hpp"
#include "core/value/value.hpp"

namespace dist {

// Creates a nest like `nest` from the results of each(item, its path, out).
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

// Calls each(i, column, its path) for each position i. The column consists of the items at position i of
// several nests that have the same structure.
template <class Each>
Status each_column(Memory& memory, std::span<Value* const> nests, const Path& path, Each&& each) {
  const Value& first = *nests[0];
  const bool keyed = first.kind() == DIST_VALUE_DICT;
  std::pmr::vector<Value*> column(nests.size(), &memory);
  for (std::size_t i = 0; i < first.items().size(); ++i) {
    for (std::size_t n = 0; n < nests.size(); ++n) column[n] = nests[n]->items()[i].get();
    const Path here = keyed ? Path::item(path, first.key(i)) : Path::item(path, i);
    DIST_TRY(each(i, column, here));
  }
  return kOk;
}

// Creates a nest with the same structure from the results of each(column, its path, out).
template <class Each>
Status map_columns(Memory& memory, std::span<Value* const> nests, const Path& path, Each&& each,
                   ValueRef* out) {
  const std::size_t n = nests[0]->items().size();
  std::pmr::vector<ValueRef> made(n, &memory);
  std::pmr::vector<Value*> pointers(n, &memory);
  const auto make = [&](std::size_t i, std::span<Value* const> column, const Path& here) {
    const Status status = each(column, here, &made[i]);
    pointers[i] = made[i].get();
    return status;
  };
  DIST_TRY(each_column(memory, nests, path, make));
  return Value::create_like(memory, *nests[0], pointers, out);
}

}  // namespace dist
