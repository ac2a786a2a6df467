// SPDX-License-Identifier: Apache-2.0
// Finds items of a file by name with a sorted index instead of scanning them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory_resource>
#include <numeric>
#include <vector>

namespace dist {

using NameIndex = std::pmr::vector<std::size_t>;

// Sets `index` to the indices of `items`, sorted by name(item). Files usually list their items by name,
// except for a few texts at the end. These few are inserted, which is faster than sorting everything.
template <class Items, class Name>
void sort_by_name(const Items& items, NameIndex& index, const Name& name) {
  constexpr std::ptrdiff_t kFew = 8;
  const auto before = [&](std::size_t a, std::size_t b) {
    return std::strcmp(name(items[a]), name(items[b])) < 0;
  };
  index.resize(items.size());
  std::iota(index.begin(), index.end(), std::size_t{0});
  const auto sorted = std::is_sorted_until(index.begin(), index.end(), before);
  if (index.end() - sorted > kFew) return std::sort(index.begin(), index.end(), before);
  for (auto each = sorted; each != index.end(); ++each)
    std::rotate(std::upper_bound(index.begin(), each, *each, before), each, each + 1);
}

// Returns the first duplicate name, or NULL.
template <class Items, class Name>
const char* twice(const Items& items, const NameIndex& index, const Name& name) {
  const auto at = std::adjacent_find(index.begin(), index.end(), [&](std::size_t a, std::size_t b) {
    return std::strcmp(name(items[a]), name(items[b])) == 0;
  });
  return at == index.end() ? nullptr : name(items[*at]);
}

// Returns NULL if there is no such item.
template <class Items, class Name>
auto find_by_name(const Items& items, const NameIndex& index, const char* wanted, const Name& name)
    -> decltype(items.data()) {
  const auto at = std::lower_bound(index.begin(), index.end(), wanted, [&](std::size_t i, const char* text) {
    return std::strcmp(name(items[i]), text) < 0;
  });
  if (at == index.end() || std::strcmp(name(items[*at]), wanted) != 0) return nullptr;
  return &items[*at];
}

}  // namespace dist
