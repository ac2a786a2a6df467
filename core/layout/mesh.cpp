// SPDX-License-Identifier: Apache-2.0
#include "core/layout/mesh.hpp"

#include <algorithm>
#include <cstdio>

namespace dist {

CoordinatesText::CoordinatesText(std::span<const int32_t> numbers) noexcept {
  constexpr std::size_t kShown = 6;
  std::size_t used = 0;
  for (std::size_t i = 0; i < std::min(numbers.size(), kShown); ++i) {
    used += static_cast<std::size_t>(
        std::snprintf(text + used, sizeof text - used, "%c%d", i == 0 ? '[' : ' ', numbers[i]));
  }
  const char* const end = numbers.empty() ? "[]" : numbers.size() > kShown ? " ...]" : "]";
  std::snprintf(text + used, sizeof text - used, "%s", end);
}

Status Mesh::make(std::span<const int32_t> shape, Mesh* out) noexcept {
  if (shape.size() != kMeshNdim || std::any_of(shape.begin(), shape.end(), [](int32_t n) { return n < 1; })) {
    return invalid_argument("`mesh_shape` is %s, but must be %zu numbers, x, y, z and core, each at least 1",
                            CoordinatesText(shape).text, kMeshNdim);
  }
  Mesh mesh;
  for (std::size_t i = 0; i < kMeshNdim; ++i) {
    const auto size = static_cast<std::size_t>(shape[i]);
    if (size > kMaxPositions / mesh.positions_) {
      return invalid_argument("`mesh_shape` is %s, but a mesh can have at most %zu positions",
                              CoordinatesText(shape).text, kMaxPositions);
    }
    mesh.positions_ *= size;
    mesh.shape_[i] = shape[i];
  }
  *out = mesh;
  return kOk;
}

std::size_t Mesh::position_of(const int32_t* coordinates) const noexcept {
  std::size_t position = 0;
  for (std::size_t i = 0; i < kMeshNdim; ++i) {
    const int32_t size = shape_[i];
    const int32_t at = coordinates[i] < 0 ? coordinates[i] + size : coordinates[i];
    if (at < 0 || at >= size) return kOutside;
    position = position * static_cast<std::size_t>(size) + static_cast<std::size_t>(at);
  }
  return position;
}

Status Mesh::find(const int32_t* coordinates, const char* what, std::size_t* out) const noexcept {
  *out = position_of(coordinates);
  if (*out != kOutside) return kOk;
  return invalid_argument("%s %s lie outside the mesh, whose shape is %s", what,
                          CoordinatesText({coordinates, kMeshNdim}).text, CoordinatesText(shape_).text);
}

Coordinates Mesh::coordinates_of(std::size_t position) const noexcept {
  Coordinates coordinates{};
  for (std::size_t i = kMeshNdim; i-- > 0;) {
    const auto size = static_cast<std::size_t>(shape_[i]);
    coordinates[i] = static_cast<int32_t>(position % size);
    position /= size;
  }
  return coordinates;
}

}  // namespace dist
