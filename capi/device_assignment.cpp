// SPDX-License-Identifier: Apache-2.0
// topology.h: device assignments.
#include "core/topology/device_assignment.hpp"

#include <algorithm>

#include "capi/topology.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

// `make` gets the topology.
template <class Make>
dist_status create(const char* call, dist_topology* topology, dist_device_assignment** out, Make&& make) {
  return guard([&]() -> Status {
    DIST_TRY(require(topology, call, "topology"));
    DIST_TRY(require(out, call, "out_assignment"));
    Ref<DeviceAssignment> made;
    DIST_TRY(make(Ref<Topology>::share(capi::unwrap(topology)), &made));
    *out = reinterpret_cast<dist_device_assignment*>(made.take());
    return kOk;
  });
}

dist_status name_of(NameOf of, const dist_device_assignment* assignment, int32_t replica,
                    int32_t logical_device, const char* job, char* out_name, size_t size_bytes,
                    const char* call) {
  return guard([&]() -> Status {
    DIST_TRY(require(assignment, call, "assignment"));
    DIST_TRY(require(out_name, call, "out_name"));
    DevicePlace place;
    DIST_TRY(unwrap(assignment)->place(replica, logical_device, &place));
    return write_name(of, place, job, out_name, size_bytes);
  });
}

}  // namespace

dist_status dist_device_assignment_build(dist_topology* topology, const int32_t* computation_shape,
                                         const int32_t* computation_stride, size_t rank, int32_t num_replicas,
                                         int32_t device_order, dist_device_assignment** out_assignment) {
  const auto sizes = [rank](const int32_t* numbers) {
    return std::span<const int32_t>(numbers, numbers == nullptr ? 0 : rank);
  };
  const Computation computation{sizes(computation_shape), sizes(computation_stride), num_replicas,
                                device_order};
  return create("dist_device_assignment_build", topology, out_assignment,
                [&](Ref<Topology> on, Ref<DeviceAssignment>* out) {
                  return build_assignment(std::move(on), computation, out);
                });
}

dist_status dist_device_assignment_create(dist_topology* topology, const int32_t* core_assignment,
                                          int32_t num_replicas, int32_t num_logical_devices, size_t rank,
                                          dist_device_assignment** out_assignment) {
  return create("dist_device_assignment_create", topology, out_assignment,
                [&](Ref<Topology> on, Ref<DeviceAssignment>* out) {
                  return DeviceAssignment::create(std::move(on), core_assignment, num_replicas,
                                                  num_logical_devices, rank, out);
                });
}

dist_status dist_device_assignment_create_single(dist_topology* topology,
                                                 dist_device_assignment** out_assignment) {
  return create("dist_device_assignment_create_single", topology, out_assignment,
                [](Ref<Topology> on, Ref<DeviceAssignment>* out) {
                  constexpr Coordinates kFirst{};
                  return DeviceAssignment::create(std::move(on), kFirst.data(), 1, 1, kMeshRank, out);
                });
}

void dist_device_assignment_destroy(dist_device_assignment* assignment) {
  if (assignment != nullptr) reinterpret_cast<DeviceAssignment*>(assignment)->release();
}

dist_topology* dist_device_assignment_topology(const dist_device_assignment* assignment) {
  return assignment == nullptr ? nullptr : wrap(&unwrap(assignment)->topology());
}

int32_t dist_device_assignment_num_replicas(const dist_device_assignment* assignment) {
  return assignment == nullptr ? 0 : unwrap(assignment)->num_replicas();
}

int32_t dist_device_assignment_num_logical_devices(const dist_device_assignment* assignment) {
  return assignment == nullptr ? 0 : unwrap(assignment)->num_logical_devices();
}

const int32_t* dist_device_assignment_core_assignment(const dist_device_assignment* assignment) {
  if (assignment == nullptr || unwrap(assignment)->core_assignment().empty()) return nullptr;
  return unwrap(assignment)->core_assignment().data();
}

dist_status dist_device_assignment_coordinates(const dist_device_assignment* assignment, int32_t replica,
                                               int32_t logical_device, int32_t* out_coordinates) {
  constexpr const char* kCall = "dist_device_assignment_coordinates";
  return guard([&]() -> Status {
    DIST_TRY(require(assignment, kCall, "assignment"));
    DIST_TRY(require(out_coordinates, kCall, "out_coordinates"));
    const int32_t* at = nullptr;
    DIST_TRY(unwrap(assignment)->coordinates(replica, logical_device, &at));
    std::copy_n(at, kMeshRank, out_coordinates);
    return kOk;
  });
}

dist_status dist_device_assignment_device(const dist_device_assignment* assignment, int32_t replica,
                                          int32_t logical_device, int32_t* out_device) {
  constexpr const char* kCall = "dist_device_assignment_device";
  return guard([&]() -> Status {
    DIST_TRY(require(assignment, kCall, "assignment"));
    DIST_TRY(require(out_device, kCall, "out_device"));
    DevicePlace place;
    DIST_TRY(unwrap(assignment)->place(replica, logical_device, &place));
    *out_device = place.device;
    return kOk;
  });
}

dist_status dist_device_assignment_device_name(const dist_device_assignment* assignment, int32_t replica,
                                               int32_t logical_device, const char* job, char* out_name,
                                               size_t size_bytes) {
  return name_of(NameOf::kDevice, assignment, replica, logical_device, job, out_name, size_bytes,
                 "dist_device_assignment_device_name");
}

dist_status dist_device_assignment_host_name(const dist_device_assignment* assignment, int32_t replica,
                                             int32_t logical_device, const char* job, char* out_name,
                                             size_t size_bytes) {
  return name_of(NameOf::kHost, assignment, replica, logical_device, job, out_name, size_bytes,
                 "dist_device_assignment_host_name");
}

dist_status dist_device_assignment_lookup_replicas(const dist_device_assignment* assignment, int32_t task,
                                                   int32_t logical_device, int32_t* out_replicas,
                                                   size_t capacity, size_t* out_n) {
  constexpr const char* kCall = "dist_device_assignment_lookup_replicas";
  return guard([&]() -> Status {
    DIST_TRY(require(assignment, kCall, "assignment"));
    DIST_TRY(require(out_n, kCall, "out_n"));
    DIST_TRY(check_list(out_replicas, capacity, kCall, "out_replicas", "capacity"));
    size_t written = 0;
    const size_t n = unwrap(assignment)->for_replicas_of(task, logical_device, [&](int32_t replica) {
      if (written < capacity) out_replicas[written++] = replica;
    });
    if (n == 0)
      return invalid_argument("no replica has its logical device %d in task %d", logical_device, task);
    *out_n = n;
    return kOk;
  });
}
