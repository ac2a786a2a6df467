// SPDX-License-Identifier: Apache-2.0
// Partition: which part of a tensor each logical device of a replica has. Tiles are dealt to the devices
// row-major: device d has the tile whose index is d's place in a box of the shape `dimensions`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.hpp"

namespace dist {

// A size that is known only when the tensor is there.
inline constexpr int64_t kUnknownSize = -1;

// Where the numbers of a shard go.
struct Shard {
  int64_t* tile;  // NULL: not asked for, as `elements` too
  int64_t* begin;
  int64_t* size;
  int64_t* elements;  // of the shard; a scalar that is another device's has 0
};

struct Partition {
  int32_t kind = DIST_PARTITION_SPLIT;
  std::span<const int64_t> shape;       // of the tensor
  std::span<const int64_t> dimensions;  // SPLIT: into how many parts each dimension is split
  int32_t num_logical_devices = 1;
  int32_t logical_device = 0;  // ASSIGN: who has it all
  bool uneven = false;         // sizes that do not divide are split as evenly as possible
  bool spmd = false;           // one program for all devices, so that none can have a tensor alone

  // What TensorFlow checks, in its order: number of dimensions, divisibility from the first dimension on, number of parts.
  Status check() const noexcept;
  // Of a partition that passed check(): a number for each dimension in the shard's tile, begin and size. What
  // depends on an unknown size is unknown.
  Status shard(int32_t device, const Shard& out) const noexcept;

 private:
  Status check_split() const noexcept;
  Status check_assign() const noexcept;
};

}  // namespace dist
