// SPDX-License-Identifier: Apache-2.0
// Orders the chips of a box so that they form a ring in which each chip is a neighbour of the next.
#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>
#include <vector>

namespace dist {

using Chip = std::array<int32_t, 3>;  // x, y, z

// Returns all x * y * z chips. They form a ring if two or three sizes are above 1 and all of these are even,
// and a line if only one size is above 1. Otherwise they are in plain order with x fastest, as in TensorFlow.
std::pmr::vector<Chip> ring_order(int32_t x, int32_t y, int32_t z, std::pmr::memory_resource* memory);

}  // namespace dist
