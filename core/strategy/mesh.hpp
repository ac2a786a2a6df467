// SPDX-License-Identifier: Apache-2.0
// The mesh strategy: which devices belong to which replica, the names of their axes, and what replicas and
// logical devices ask of it.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/run/device_team.hpp"
#include "core/topology/device_assignment.hpp"
#include "core/topology/partition.hpp"

namespace dist {

struct MeshAxis {
  const char* name;
  int32_t size;
};

struct MeshOptions {
  DeviceAssignment* assignment = nullptr;  // NULL: replicas of one logical device each
  std::span<const MeshAxis> axes;  // of a replica's devices, the last one running fastest; none: its own
  bool spmd = false;               // one program runs on all devices of a replica: no tensor is assigned

  bool given() const noexcept { return assignment != nullptr || !axes.empty() || spmd; }
};

// OK where a strategy can be made of it: every logical device is a device of the topology, and no two are the
// same one. Throws std::bad_alloc.
Status check_mesh(const MeshOptions& options);

// The CPU of each logical device of each replica, where the topology is one of this host's CPUs; else none.
// Throws std::bad_alloc.
std::pmr::vector<int> named_cpus(const DeviceAssignment& assignment, Memory& memory);

// The axes that were given; else those of the mesh (x, y, z, core), where each replica is a block of it whose
// last axis runs fastest; else one axis, "device".
DeviceMesh make_mesh(const MeshOptions& options, Memory& memory);

// Sets how the replica divides tensors, except for the kind of division. On the replica's thread; `call` is
// the function's name in messages.
Status begin_partition(const Replica& replica, const char* call, Partition* out) noexcept;

// The coordinates (kMeshNdim numbers) of the logical device in the mesh of the strategy's device_assignment.
// On the device's thread.
Status coordinates_of(const Replica& device, const char* call, const int32_t** out) noexcept;

}  // namespace dist
