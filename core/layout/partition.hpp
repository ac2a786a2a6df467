// SPDX-License-Identifier: Apache-2.0
// Partition: which part of a tensor belongs to each logical device of a replica. Tiles are assigned to
// devices in row-major order: device d has the tile whose index is d's position in a box of the shape
// `dimensions`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.hpp"

namespace dist {

// A size that is unknown until there is a tensor.
inline constexpr int64_t kUnknownSize = -1;

// Receives the numbers of a shard.
struct Shard {
  int64_t* tile;  // may be NULL
  int64_t* begin;
  int64_t* size;
  int64_t* elements;  // number of elements; 0 for a scalar that another device has; may be NULL
};

struct Partition {
  dist_partition_kind kind = DIST_PARTITION_SPLIT;
  std::span<const int64_t> shape;       // of the tensor
  std::span<const int64_t> dimensions;  // SPLIT: number of parts of each dimension
  int32_t num_logical_devices = 1;
  int32_t logical_device = 0;  // ASSIGN: the device that has the whole tensor
  bool uneven = false;         // sizes that are not divisible are split as evenly as possible
  bool spmd = false;           // one program for all devices, so that a tensor cannot belong to one of them

  // Checks what TensorFlow checks, in its order: number of dimensions, divisibility from the first dimension
  // on, number of parts.
  Status check() const noexcept;
  // For a valid partition: writes a number for each dimension to the shard's tile, begin and size. Numbers
  // that depend on an unknown size are kUnknownSize.
  Status shard(int32_t device, const Shard& out) const noexcept;

 private:
  Status check_split() const noexcept;
  Status check_assign() const noexcept;
};

}  // namespace dist
