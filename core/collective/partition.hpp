// SPDX-License-Identifier: Apache-2.0
// Partition: how the elements of a list of tensors are dealt to the members of a group. Pure arithmetic.
//
// A list travels as one: its tensors lie one after another in a space of 64-byte units, each tensor beginning
// a unit of its own, and a member's part, or a block that whoever has time takes, is a range of units. No
// byte is copied to make the list one. Where elements of an operator of the host's are larger than those of
// the tensors, units hold whole ones, and so measure something else.
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
// Of elements that are not to be cut: at least one of them, and about as much as other units. 0: any.
constexpr std::size_t unit_bytes_for(std::size_t element_bytes) noexcept {
  if (element_bytes == 0) return kUnitBytes;
  return element_bytes * std::max<std::size_t>(1, kUnitBytes / element_bytes);
}

// A range of units.
struct Range {
  std::size_t begin;
  std::size_t end;
};

// Member `rank`'s part of `units`: equal parts, one unit more or less.
constexpr Range part_of(std::size_t units, std::size_t parts, std::size_t rank) noexcept {
  const std::size_t share = units / parts;
  const std::size_t rest = units % parts;
  const std::size_t begin = share * rank + std::min(rank, rest);
  return {begin, begin + share + (rank < rest ? 1 : 0)};
}

// Block `index` of `units`, `block` units long, the last one shorter.
constexpr Range block_of(std::size_t units, std::size_t block, std::size_t index) noexcept {
  const std::size_t begin = std::min(units, index * block);
  return {begin, std::min(units, begin + block)};
}

}  // namespace dist
