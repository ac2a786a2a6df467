// SPDX-License-Identifier: Apache-2.0
// The shape of a mesh of devices (x, y, z, core), and positions in it by coordinates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.hpp"

namespace dist {

inline constexpr std::size_t kMeshNdim = 4;
using Coordinates = std::array<int32_t, kMeshNdim>;

// Limit for the positions of a mesh and the devices of a topology. With it, the tables for them take a few
// megabytes.
inline constexpr std::size_t kMaxPositions = DIST_MAX_MESH_POSITIONS;

// "[2 2 1 2]", as NumPy prints it; for messages.
struct CoordinatesText {
  explicit CoordinatesText(std::span<const int32_t> numbers) noexcept;
  char text[96];
};

class Mesh {
 public:
  static constexpr std::size_t kOutside = SIZE_MAX;

  // Fails with INVALID_ARGUMENT unless `shape` consists of kMeshNdim positive sizes with at most
  // kMaxPositions positions.
  static Status make(std::span<const int32_t> shape, Mesh* out) noexcept;

  const Coordinates& shape() const noexcept { return shape_; }
  std::size_t positions() const noexcept { return positions_; }
  // Row-major. A coordinate of -1 means the last one, as in Python.
  std::size_t position_of(const int32_t* coordinates) const noexcept;
  // The same, but checks that the position is inside the mesh. `what` is the beginning of messages.
  Status find(const int32_t* coordinates, const char* what, std::size_t* out) const noexcept;
  Coordinates coordinates_of(std::size_t position) const noexcept;

 private:
  Coordinates shape_{1, 1, 1, 1};
  std::size_t positions_ = 1;
};

}  // namespace dist
