// SPDX-License-Identifier: Apache-2.0
// The mesh strategy: which devices form which replica, the names of their axes, and the related functions for
// replicas and logical devices.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/layout/device_assignment.hpp"
#include "core/layout/partition.hpp"
#include "core/run/device_team.hpp"

namespace dist {

struct MeshAxis {
  const char* name;
  int32_t size;
};

struct MeshOptions {
  DeviceAssignment* assignment = nullptr;  // NULL: one logical device per replica
  // Of a replica's devices, in row-major order; empty: those of the assignment.
  std::span<const MeshAxis> axes;
  bool spmd = false;  // the program runs on all devices of a replica; tensors are not assigned to devices

  bool given() const noexcept { return assignment != nullptr || !axes.empty() || spmd; }
};

// Checks that a strategy can be created: every logical device is a device of the topology, and no two are the
// same. Throws std::bad_alloc.
Status check_mesh(const MeshOptions& options);

// The CPU of each logical device of each replica if the topology describes the CPUs of this host, otherwise
// empty. Throws std::bad_alloc.
std::pmr::vector<int> named_cpus(const DeviceAssignment& assignment, Memory& memory);

// The given axes. Without them, the axes of the mesh (x, y, z, core) if each replica is a block of it in
// row-major order, otherwise a single axis "device".
DeviceMesh make_mesh(const MeshOptions& options, Memory& memory);

// Sets how the replica divides tensors, except for the kind of division. Must be called on the replica's
// thread. `call` is the host's function, for messages.
Status begin_partition(const Replica& replica, const char* call, Partition* out) noexcept;

// The coordinates (kMeshNdim numbers) of the logical device in the mesh of the strategy's device_assignment.
// Must be called on the device's thread.
Status coordinates_of(const Replica& device, const char* call, const int32_t** out) noexcept;

}  // namespace dist
