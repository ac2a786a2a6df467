// SPDX-License-Identifier: Apache-2.0
// Handle conversions for topology.h.
#pragma once

#include "capi/guard.hpp"
#include "core/layout/device_assignment.hpp"
#include "core/layout/topology.hpp"

namespace dist::capi {

inline Topology* unwrap(dist_topology* handle) noexcept { return reinterpret_cast<Topology*>(handle); }
inline const Topology* unwrap(const dist_topology* handle) noexcept {
  return reinterpret_cast<const Topology*>(handle);
}
inline const DeviceAssignment* unwrap(const dist_device_assignment* handle) noexcept {
  return reinterpret_cast<const DeviceAssignment*>(handle);
}
inline const dist_device_assignment* wrap(const DeviceAssignment* assignment) noexcept {
  return reinterpret_cast<const dist_device_assignment*>(assignment);
}
inline dist_topology* wrap(Topology* topology) noexcept { return reinterpret_cast<dist_topology*>(topology); }

}  // namespace dist::capi
