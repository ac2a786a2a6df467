// SPDX-License-Identifier: Apache-2.0
// Divides the elements of a list of tensors among the members of a group. This is pure arithmetic.
//
// A list is exchanged as a whole. Its tensors are laid end to end in a space of 64-byte units, and each
// tensor begins a new unit; nothing is copied for this. A member's part is a range of units. A block, which
// any member may take, is a range of units too. With a host operator, elements must not be cut: then a unit
// holds whole elements and may have another size.
//
// Invariant: no two members write to the same unit.
#pragma once

#include <algorithm>
#include <cstddef>

namespace dist {

inline constexpr std::size_t kUnitBytes = 64;

constexpr std::size_t units_of(std::size_t bytes) noexcept { return (bytes + kUnitBytes - 1) / kUnitBytes; }
constexpr std::size_t units_of(std::size_t bytes, std::size_t unit_bytes) noexcept {
  if (unit_bytes == kUnitBytes) [[likely]]
    return units_of(bytes);
  return (bytes + unit_bytes - 1) / unit_bytes;
}
// The unit size for elements that must not be cut: at least one element, and about 64 bytes if elements are
// small. If `element_bytes` is 0, elements may be cut anywhere.
constexpr std::size_t unit_bytes_for(std::size_t element_bytes) noexcept {
  if (element_bytes == 0) return kUnitBytes;
  return element_bytes * std::max<std::size_t>(1, kUnitBytes / element_bytes);
}

// A range of units.
struct Range {
  std::size_t begin;
  std::size_t end;
};

// Member `rank`'s part of `units`. Parts differ by at most one unit.
constexpr Range part_of(std::size_t units, std::size_t parts, std::size_t rank) noexcept {
  const std::size_t share = units / parts;
  const std::size_t rest = units % parts;
  const std::size_t begin = share * rank + std::min(rank, rest);
  return {begin, begin + share + (rank < rest ? 1 : 0)};
}

// Block `index` of `units`. Blocks have `block` units, except that the last one may be shorter.
constexpr Range block_of(std::size_t units, std::size_t block, std::size_t index) noexcept {
  const std::size_t begin = std::min(units, index * block);
  return {begin, std::min(units, begin + block)};
}

}  // namespace dist
