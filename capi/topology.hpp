// SPDX-License-Identifier: Apache-2.0
// Handles of section 15.
#pragma once

#include "capi/guard.hpp"
#include "core/topology/topology.hpp"

namespace dist::capi {

inline Topology* unwrap(dist_topology* handle) noexcept { return reinterpret_cast<Topology*>(handle); }
inline const Topology* unwrap(const dist_topology* handle) noexcept {
  return reinterpret_cast<const Topology*>(handle);
}
inline dist_topology* wrap(Topology* topology) noexcept { return reinterpret_cast<dist_topology*>(topology); }

}  // namespace dist::capi
