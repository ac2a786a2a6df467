// SPDX-License-Identifier: Apache-2.0
#include "core/layout/device_assignment.hpp"

namespace dist {
namespace {

Status check_counts(int32_t num_replicas, int32_t num_logical_devices, std::size_t ndim) noexcept {
  if (ndim != kMeshNdim) {
    return invalid_argument("each device of `core_assignment` has %zu coordinates, but the mesh has %zu",
                            ndim, kMeshNdim);
  }
  if (num_replicas < 0 || num_logical_devices < 0) {
    return invalid_argument(
        "`num_replicas` is %d and `num_logical_devices` is %d, but both must be at least 0", num_replicas,
        num_logical_devices);
  }
  const int64_t devices = int64_t{num_replicas} * num_logical_devices;
  if (devices > static_cast<int64_t>(kMaxPositions)) {
    return invalid_argument(
        "%d replicas of %d logical devices have %lld devices, but an assignment can have at most %zu",
        num_replicas, num_logical_devices, static_cast<long long>(devices), kMaxPositions);
  }
  return kOk;
}

// Converts an index as Python does; -1 if it is out of range.
constexpr int32_t wrapped(int32_t index, int32_t size) noexcept {
  const int32_t at = index < 0 ? index + size : index;
  return at < size && at >= 0 ? at : -1;
}

}  // namespace

Status DeviceAssignment::create(Ref<Topology> topology, const int32_t* core_assignment, int32_t num_replicas,
                                int32_t num_logical_devices, std::size_t ndim, Ref<DeviceAssignment>* out) {
  DIST_TRY(check_counts(num_replicas, num_logical_devices, ndim));
  const auto devices = static_cast<std::size_t>(num_replicas) * static_cast<std::size_t>(num_logical_devices);
  if (devices != 0 && core_assignment == nullptr)
    return invalid_argument("`core_assignment` is `NULL`, but there are %zu devices", devices);
  for (std::size_t i = 0; i < devices; ++i) {
    std::size_t position = 0;
    DIST_TRY(topology->mesh().find(core_assignment + i * kMeshNdim, "core_assignment: the coordinates",
                                   &position));
  }
  Memory& memory = topology->memory();
  auto made = make_counted<DeviceAssignment>(memory, std::move(topology));
  made->num_replicas_ = num_replicas;
  made->num_logical_devices_ = num_logical_devices;
  made->core_assignment_.assign(core_assignment, core_assignment + devices * kMeshNdim);
  *out = std::move(made);
  return kOk;
}

const int32_t* DeviceAssignment::entry(int32_t replica, int32_t logical_device) const noexcept {
  const auto row = static_cast<std::size_t>(replica) * static_cast<std::size_t>(num_logical_devices_);
  return core_assignment_.data() + (row + static_cast<std::size_t>(logical_device)) * kMeshNdim;
}

DevicePlace DeviceAssignment::place_of(int32_t replica, int32_t logical_device) const noexcept {
  return topology_->at(topology_->mesh().position_of(entry(replica, logical_device)));
}

Status DeviceAssignment::coordinates(int32_t replica, int32_t logical_device,
                                     const int32_t** out) const noexcept {
  const int32_t r = wrapped(replica, num_replicas_);
  const int32_t d = wrapped(logical_device, num_logical_devices_);
  if (r < 0)
    return invalid_argument("there is no replica %d. The assignment has %d.", replica, num_replicas_);
  if (d < 0) {
    return invalid_argument("there is no logical device %d. A replica has %d.", logical_device,
                            num_logical_devices_);
  }
  *out = entry(r, d);
  return kOk;
}

Status DeviceAssignment::place(int32_t replica, int32_t logical_device, DevicePlace* out) const noexcept {
  const int32_t* at = nullptr;
  DIST_TRY(coordinates(replica, logical_device, &at));
  return topology_->at(at, out);
}

Status DeviceAssignment::lookup_replicas(int32_t task, int32_t logical_device, std::span<int32_t> out,
                                         std::size_t* out_n) const noexcept {
  std::size_t n = 0;
  const bool there = logical_device >= 0 && logical_device < num_logical_devices_;
  for (int32_t replica = 0; there && replica < num_replicas_; ++replica) {
    if (place_of(replica, logical_device).task != task) continue;
    if (n < out.size()) out[n] = replica;
    ++n;
  }
  if (n == 0) return invalid_argument("no replica has logical device %d in task %d", logical_device, task);
  *out_n = n;
  return kOk;
}

}  // namespace dist
