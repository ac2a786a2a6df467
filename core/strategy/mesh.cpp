// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/mesh.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory_resource>
#include <vector>

#include "core/base/text.hpp"
#include "core/run/device_run.hpp"
#include "core/strategy/scope.hpp"

namespace dist {
namespace {

constexpr std::array<const char*, kMeshNdim> kMeshNames = {"x", "y", "z", "core"};

// The position of a logical device in the topology, if it has one.
Status find_position(const DeviceAssignment& assignment, int32_t replica, int32_t logical_device,
                     std::size_t* out) noexcept {
  const int32_t* at = nullptr;
  DevicePlace place;
  DIST_TRY(assignment.coordinates(replica, logical_device, &at));
  DIST_TRY(assignment.place(replica, logical_device, &place));
  if (place.device < 0) {
    return invalid_argument(
        "`device_assignment`: logical device %d of replica %d is at %s, where the topology has no device",
        logical_device, replica, CoordinatesText({at, kMeshNdim}).text);
  }
  *out = assignment.topology().mesh().position_of(at);
  return kOk;
}

Status check_assignment(const DeviceAssignment& assignment) {
  const int32_t replicas = assignment.num_replicas();
  const int32_t devices = assignment.num_logical_devices();
  if (replicas < 1 || devices < 1) {
    return invalid_argument(
        "`device_assignment` has %d replicas of %d logical devices, but a strategy needs at least one of "
        "each",
        replicas, devices);
  }
  std::pmr::vector<std::size_t> taken(&assignment.memory());
  taken.reserve(static_cast<std::size_t>(replicas) * static_cast<std::size_t>(devices));
  for (int32_t r = 0; r < replicas; ++r) {
    for (int32_t d = 0; d < devices; ++d) {
      std::size_t position = 0;
      DIST_TRY(find_position(assignment, r, d, &position));
      taken.push_back(position);
    }
  }
  std::sort(taken.begin(), taken.end());
  const auto twice = std::adjacent_find(taken.begin(), taken.end());
  if (twice == taken.end()) return kOk;
  return invalid_argument(
      "`device_assignment`: the device at %s is used twice. A strategy can use each device only once.",
      CoordinatesText(assignment.topology().mesh().coordinates_of(*twice)).text);
}

Status check_axes(const MeshOptions& options) noexcept {
  const int32_t devices = options.assignment == nullptr ? 1 : options.assignment->num_logical_devices();
  int64_t product = 1;
  for (std::size_t i = 0; i < options.axes.size(); ++i) {
    const MeshAxis& axis = options.axes[i];
    if (axis.name == nullptr || axis.name[0] == '\0') return invalid_argument("axes[%zu] has no name", i);
    DIST_TRY(check_name(axis.name, "the name of an axis"));
    if (axis.size < 1)
      return invalid_argument("axes[%zu], \"%s\", has the size %d, but must be at least 1", i, axis.name,
                              axis.size);
    for (std::size_t j = 0; j < i; ++j) {
      if (std::strcmp(options.axes[j].name, axis.name) == 0)
        return invalid_argument("axes[%zu] and axes[%zu] have the same name, \"%s\"", j, i, axis.name);
    }
    product = std::min<int64_t>(product * axis.size, int64_t{devices} + 1);
  }
  if (options.axes.empty() || product == devices) return kOk;
  return invalid_argument(
      "the product of the axes' sizes must be %d, the number of logical devices of a replica", devices);
}

// The size of the blocks that form the replicas, if all of them are blocks of the same size in row-major
// order.
bool find_blocks(const DeviceAssignment& assignment, Coordinates* out) noexcept {
  const int32_t devices = assignment.num_logical_devices();
  const auto at = [&](int32_t replica, int32_t device) {
    const int32_t* coordinates = nullptr;
    (void)assignment.coordinates(replica, device, &coordinates);
    return coordinates;
  };
  // In a block, a coordinate first changes after as many devices as the following dimensions contain.
  int32_t behind = 1;
  for (std::size_t i = kMeshNdim; i-- > 0;) {
    int32_t size = 1;
    while (size * behind < devices && at(0, size * behind)[i] > at(0, (size - 1) * behind)[i]) ++size;
    (*out)[i] = size;
    behind *= size;
  }
  if (behind != devices) return false;
  for (int32_t r = 0; r < assignment.num_replicas(); ++r) {
    for (int32_t d = 0; d < devices; ++d) {
      int32_t step = 1;
      for (std::size_t i = kMeshNdim; i-- > 0;) {
        const int32_t index = d / step % (*out)[i];
        if (at(r, d)[i] != at(r, index * step)[i]) return false;
        step *= (*out)[i];
      }
    }
  }
  return true;
}

void add(DeviceMesh* mesh, const char* name, int32_t size) {
  mesh->names.emplace_back(name);
  mesh->sizes.push_back(size);
}

}  // namespace

Status check_mesh(const MeshOptions& options) {
  if (options.assignment != nullptr) DIST_TRY(check_assignment(*options.assignment));
  return check_axes(options);
}

std::pmr::vector<int> named_cpus(const DeviceAssignment& assignment, Memory& memory) {
  std::pmr::vector<int> cpus(&memory);
  const Topology& topology = assignment.topology();
  if (!topology.is_host()) return cpus;
  for (int32_t r = 0; r < assignment.num_replicas(); ++r) {
    for (int32_t d = 0; d < assignment.num_logical_devices(); ++d) {
      DevicePlace place;
      int32_t cpu = -1;
      if (assignment.place(r, d, &place).ok()) (void)topology.cpu_of(place, &cpu);
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

DeviceMesh make_mesh(const MeshOptions& options, Memory& memory) {
  DeviceMesh mesh(memory);
  const DeviceAssignment* const assignment = options.assignment;
  mesh.num_devices = assignment == nullptr ? 1 : assignment->num_logical_devices();
  Coordinates sizes;
  if (!options.axes.empty()) {
    for (const MeshAxis& axis : options.axes) add(&mesh, axis.name, axis.size);
  } else if (assignment != nullptr && find_blocks(*assignment, &sizes)) {
    for (std::size_t i = 0; i < kMeshNdim; ++i) add(&mesh, kMeshNames[i], sizes[i]);
  } else {
    add(&mesh, "device", mesh.num_devices);
  }
  return mesh;
}

Status begin_partition(const Replica& replica, const char* call, Partition* out) noexcept {
  DeviceTeam* team = nullptr;
  DIST_TRY(find_team(replica, call, &team));
  out->num_logical_devices = team->num_devices();
  out->spmd = strategy_of(replica).spmd();
  return kOk;
}

Status coordinates_of(const Replica& device, const char* call, const int32_t** out) noexcept {
  DeviceTeam* team = nullptr;
  DIST_TRY(find_own_team(device, call, &team));
  const DeviceAssignment* const assignment = strategy_of(device).assignment();
  if (assignment == nullptr) {
    return failed_precondition(
        "`%s()`: the strategy was created without a `device_assignment`, so `coordinates` are not known",
        call);
  }
  return assignment->coordinates(number(device.name().replica), device.rank(), out);
}

}  // namespace dist
