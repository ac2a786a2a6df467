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
#include "core/topology/topology.hpp"

namespace dist {

class DeviceAssignment final : public Counted {
 public:
  // core_assignment[(replica * logical_devices + d) * ndim + axis]: positions in the mesh. A device may be
  // there more than once, and a hole may be one.
  static Status create(Ref<Topology> topology, const int32_t* core_assignment, int32_t num_replicas,
                       int32_t num_logical_devices, std::size_t ndim, Ref<DeviceAssignment>* out);

  Topology& topology() const noexcept { return *topology_; }
  int32_t num_replicas() const noexcept { return num_replicas_; }
  int32_t num_logical_devices() const noexcept { return num_logical_devices_; }  // of each replica
  std::span<const int32_t> core_assignment() const noexcept { return core_assignment_; }

  // kMeshNdim numbers. An index of -1 is the last replica or logical device.
  Status coordinates(int32_t replica, int32_t logical_device, const int32_t** out) const noexcept;
  Status place(int32_t replica, int32_t logical_device, DevicePlace* out) const noexcept;
  // The replicas, ascending, whose logical device `logical_device` is one of the task's: as many as there is
  // room for. *out_n: how many there are, at least one.
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

// A block of devices for each replica.
struct Computation {
  std::span<const int32_t> shape;   // of a replica's block; empty: 1 in each direction
  std::span<const int32_t> stride;  // from one of its devices to the next; empty: 1 in each direction
  int32_t num_replicas;
  int32_t order;  // a DIST_DEVICE_ORDER_...; any other number counts as MESH
};

// Lays replicas out over a topology, by TensorFlow's rule (DeviceAssignment.build):
//
//   - Where devices are missing, replicas take devices in the order of tasks, whatever the order and the
//     shape of their block; strides are refused.
//   - AUTO makes rings of replicas, and of each replica's devices, where blocks have the whole of the last
//     dimension and no stride, and as many replicas are wanted as there is room for. RING insists on it.
//   - Else replicas lie in a box as close to a cube as fits: core first, then x, y and z; the devices of a
//     block are row-major, core fastest.
Status build_assignment(Ref<Topology> topology, const Computation& computation, Ref<DeviceAssignment>* out);

}  // namespace dist
