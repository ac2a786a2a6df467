// SPDX-License-Identifier: Apache-2.0
// Collectives on one tensor that is divided among the members: halo exchange and resharding. Each member
// copies the elements that it needs out of its peers' parts.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/base/status.hpp"
#include "core/collective/collectives.hpp"
#include "core/layout/partition.hpp"
#include "dist/types.h"

namespace dist {

// How far beyond its tile a member reads, with one number for each dimension.
struct Halo {
  std::span<const int64_t> parts;  // number of tiles in the dimension; ranks are row-major
  std::span<const int64_t> low;    // elements before the tile
  std::span<const int64_t> high;   // elements after the tile
  std::array<dist_edge, DIST_MAX_NDIM> edges{};
};

// Writes the tile `in` and the elements around it to `out`. Tiles may have any sizes that fit together.
Status halo_exchange(const Member& member, const dist_tensor& in, const Halo& halo,
                     const dist_tensor& out) noexcept;

// Writes the member's part of the tensor under `to` to `out`; `in` is its part under `from`. Both partitions
// have the same shape with known sizes. A tensor is NULL if the member has no part.
Status reshard(const Member& member, const Partition& from, const Partition& to, const dist_tensor* in,
               const dist_tensor* out) noexcept;

// Number of bytes that a logical device receives from others in reshard(); with -1, the number that all of
// them receive.
Status bytes_to_move(const Partition& from, const Partition& to, dist_dtype dtype, int32_t logical_device,
                     std::size_t* out) noexcept;

}  // namespace dist
