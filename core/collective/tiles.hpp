// SPDX-License-Identifier: Apache-2.0
// Collectives on the tiles of one tensor, of which each member has one: halos, and other divisions. Each
// member copies what it needs out of its peers' tiles.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/status.hpp"
#include "core/collective/collectives.hpp"
#include "core/topology/partition.hpp"
#include "dist/types.h"

namespace dist {

// How far around its tile a member sees; one number for each dimension.
struct Halo {
  std::span<const int64_t> parts;  // into how many tiles the dimension is cut; ranks are row-major
  std::span<const int64_t> low;    // elements before the tile
  std::span<const int64_t> high;   // and behind it
  std::span<const int32_t> edges;  // DIST_EDGE_...
};

// out = the tile `in` and what surrounds it in the whole tensor. Tiles may be of any sizes that fit together.
Status halo_exchange(const Member& member, const dist_tensor& in, const Halo& halo,
                     const dist_tensor& out) noexcept;

// out = what the member has of the tensor under `to`, where it has `in` under `from`: of one shape, which is
// known. NULL where it has nothing.
Status reshard(const Member& member, const Partition& from, const Partition& to, const dist_tensor* in,
               const dist_tensor* out) noexcept;

// Bytes that a logical device gets from others in reshard(); -1: all of them together.
Status bytes_to_move(const Partition& from, const Partition& to, dist_dtype dtype, int32_t device,
                     int64_t* out) noexcept;

}  // namespace dist
