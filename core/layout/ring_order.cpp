// SPDX-License-Identifier: Apache-2.0
#include "core/layout/ring_order.hpp"

#include <algorithm>
#include <cstddef>

namespace dist {
namespace {

using Chips = std::pmr::vector<Chip>;

// A ring through a box that is flat in `depth`, without its first chip. It goes alternately right and left
// through all rows but leaves out column 0, through which it returns.
//
//     0 -- 1 -- 2 -- 3
//     |              |
//     7 -- 6 -- 5 -- 4
struct Plane {
  std::size_t right;  // axes of the box
  std::size_t down;
  std::size_t depth;
  int32_t width;
  int32_t height;

  void open_ring(int32_t layer, Chips* out) const {
    const auto add = [&](int32_t column, int32_t row) {
      Chip chip{};
      chip[right] = column;
      chip[down] = row;
      chip[depth] = layer;
      out->push_back(chip);
    };
    for (int32_t row = 0; row < height; row += 2) {
      for (int32_t column = 1; column < width; ++column) add(column, row);
      for (int32_t column = width - 1; column > 0; --column) add(column, row + 1);
    }
    for (int32_t row = height - 1; row > 0; --row) add(0, row);
  }
};

constexpr bool is_odd(int32_t size) { return size > 1 && size % 2 != 0; }

}  // namespace

std::pmr::vector<Chip> ring_order(int32_t x, int32_t y, int32_t z, std::pmr::memory_resource* memory) {
  Chips order(memory);
  order.reserve(static_cast<std::size_t>(x) * static_cast<std::size_t>(y) * static_cast<std::size_t>(z));
  const bool line = (x == 1) + (y == 1) + (z == 1) >= 2;
  if (line || is_odd(x) || is_odd(y) || is_odd(z)) {
    for (int32_t k = 0; k < z; ++k) {
      for (int32_t j = 0; j < y; ++j) {
        for (int32_t i = 0; i < x; ++i) order.push_back({i, j, k});
      }
    }
    return order;
  }
  order.push_back({0, 0, 0});
  if (y == 1) {
    Plane{0, 2, 1, x, z}.open_ring(0, &order);
    return order;
  }
  if (x == 1) {
    Plane{1, 2, 0, y, z}.open_ring(0, &order);
    return order;
  }
  // The layers follow each other, and every second one is reversed, so that each begins where the previous
  // one has ended. The corners that they omit form the way back. A single layer is a ring by itself.
  const Plane plane{0, 1, 2, x, y};
  for (int32_t layer = 0; layer < z; ++layer) {
    const auto begin = static_cast<std::ptrdiff_t>(order.size());
    plane.open_ring(layer, &order);
    if (layer % 2 != 0) std::reverse(order.begin() + begin, order.end());
  }
  for (int32_t layer = z - 1; layer > 0; --layer) order.push_back({0, 0, layer});
  return order;
}

}  // namespace dist
