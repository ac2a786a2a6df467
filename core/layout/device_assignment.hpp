// SPDX-License-Identifier: Apache-2.0
// DeviceAssignment: maps each logical device of each replica to a device of a topology.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/layout/topology.hpp"

namespace dist {

class DeviceAssignment final : public Counted {
 public:
  // core_assignment[(replica * logical_devices + d) * ndim + axis] are positions in the mesh. A device may
  // occur more than once, and a position may be a hole.
  static Status create(Ref<Topology> topology, const int32_t* core_assignment, int32_t num_replicas,
                       int32_t num_logical_devices, std::size_t ndim, Ref<DeviceAssignment>* out);

  Topology& topology() const noexcept { return *topology_; }
  int32_t num_replicas() const noexcept { return num_replicas_; }
  int32_t num_logical_devices() const noexcept { return num_logical_devices_; }  // of each replica
  std::span<const int32_t> core_assignment() const noexcept { return core_assignment_; }

  // Returns kMeshNdim numbers. An index of -1 means the last replica or logical device.
  Status coordinates(int32_t replica, int32_t logical_device, const int32_t** out) const noexcept;
  Status place(int32_t replica, int32_t logical_device, DevicePlace* out) const noexcept;
  // Returns the replicas, in ascending order, whose logical device `logical_device` belongs to the task, as
  // many as fit into `out`. *out_n is their total number, which is at least one.
  Status lookup_replicas(int32_t task, int32_t logical_device, std::span<int32_t> out,
                         std::size_t* out_n) const noexcept;

 private:
  template <class T, class... Arguments>
  friend Ref<T> make_counted(Memory& memory, Arguments&&... arguments);

  DeviceAssignment(Memory& memory, Ref<Topology> topology)
      : Counted(memory), topology_(std::move(topology)), core_assignment_(&memory) {}
  const int32_t* entry(int32_t replica, int32_t logical_device) const noexcept;
  DevicePlace place_of(int32_t replica, int32_t logical_device) const noexcept;

  Ref<Topology> topology_;
  int32_t num_replicas_ = 0;
  int32_t num_logical_devices_ = 0;
  std::pmr::vector<int32_t> core_assignment_;
};

// The layout of replicas: a block of devices for each.
struct Computation {
  std::span<const int32_t> shape;   // of a replica's block; empty: 1 in each dimension
  std::span<const int32_t> stride;  // distance between its devices; empty: 1 in each dimension
  int32_t num_replicas;
  dist_device_order order;
};

// Places replicas on a topology by TensorFlow's rule (DeviceAssignment.build):
//
// - If devices are missing, replicas take devices in the order of tasks, independently of the order and of
//   the shape of their block. Strides are rejected.
// - AUTO makes rings of replicas, and rings of each replica's devices, if blocks span the whole last
//   dimension and have no stride, and as many replicas are requested as fit. RING requires that.
// - Otherwise replicas form a box that is as close to a cube as possible, with core first, then x, y and z.
//   The devices of a block are in row-major order, with core fastest.
Status build_assignment(Ref<Topology> topology, const Computation& computation, Ref<DeviceAssignment>* out);

}  // namespace dist
