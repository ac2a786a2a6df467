// SPDX-License-Identifier: Apache-2.0
// topology.h: topologies, device assignments and partitions.
#include <algorithm>

#include "capi/options.hpp"
#include "capi/partition.hpp"
#include "capi/topology.hpp"
#include "core/layout/device_assignment.hpp"
#include "core/layout/host_topology.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

// The common part of all functions that create a topology. `make` receives the memory.
template <class Make>
dist_status create(const char* call, const dist_topology_options* options, dist_topology** out, Make&& make) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(out, call, "out_topology"));
        dist_topology_options given;
        DIST_TRY(read_options(options, &given, "dist_topology_options"));
        DIST_TRY(require_zero(given.reserved, "dist_topology_options.reserved"));
        Ref<Memory> memory;
        DIST_TRY(create_memory(given.allocator, "allocator", &memory));
        Ref<Topology> made;
        DIST_TRY(make(*memory, &made));
        *out = wrap(made.take());
        return kOk;
      },
      call);
}

Status find(const dist_topology* topology, const int32_t* coordinates, const void* out, const char* out_name,
            const char* call, DevicePlace* place) noexcept {
  DIST_TRY(require(topology, call, "topology"));
  DIST_TRY(require(coordinates, call, "coordinates"));
  DIST_TRY(require(out, call, out_name));
  return unwrap(topology)->at(coordinates, place);
}

dist_status name_at(NameOf of, const dist_topology* topology, const int32_t* coordinates, const char* job,
                    char* out_name, size_t size_bytes, const char* call) {
  return guard(
      [&]() -> Status {
        DevicePlace place;
        DIST_TRY(find(topology, coordinates, out_name, "out_name", call, &place));
        return write_name(of, place, job, out_name, size_bytes);
      },
      call);
}

// Empty arrays have no pointer.
const int32_t* or_null(const int32_t* numbers, std::size_t size) noexcept {
  return size == 0 ? nullptr : numbers;
}

}  // namespace

void dist_topology_options_init(dist_topology_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_topology_create(const int32_t* mesh_shape, size_t ndim, const int32_t* device_coordinates,
                                 int32_t num_tasks, int32_t num_devices_per_task,
                                 const dist_topology_options* options, dist_topology** out_topology) {
  constexpr const char* kCall = "dist_topology_create";
  return create(kCall, options, out_topology, [&](Memory& memory, Ref<Topology>* out) -> Status {
    DIST_TRY(require(mesh_shape, kCall, "mesh_shape"));
    DIST_TRY(check_list(mesh_shape, ndim, kCall, "mesh_shape", "ndim"));
    return Topology::create(memory, {mesh_shape, ndim}, device_coordinates, num_tasks, num_devices_per_task,
                            out);
  });
}

dist_status dist_topology_from_host(const dist_topology_options* options, dist_topology** out_topology) {
  return create("dist_topology_from_host", options, out_topology, topology_from_host);
}

void dist_topology_destroy(dist_topology* topology) {
  if (topology != nullptr) unwrap(topology)->release();
}

int32_t dist_topology_mesh_rank(const dist_topology* topology) {
  return topology == nullptr ? 0 : static_cast<int32_t>(kMeshNdim);
}

const int32_t* dist_topology_mesh_shape(const dist_topology* topology) {
  return topology == nullptr ? nullptr : unwrap(topology)->mesh().shape().data();
}

int32_t dist_topology_num_tasks(const dist_topology* topology) {
  return topology == nullptr ? 0 : unwrap(topology)->num_tasks();
}

int32_t dist_topology_num_devices_per_task(const dist_topology* topology) {
  return topology == nullptr ? 0 : unwrap(topology)->num_devices_per_task();
}

const int32_t* dist_topology_device_coordinates(const dist_topology* topology) {
  if (topology == nullptr) return nullptr;
  const auto numbers = unwrap(topology)->device_coordinates();
  return or_null(numbers.data(), numbers.size());
}

size_t dist_topology_num_missing_devices(const dist_topology* topology) {
  return topology == nullptr ? 0 : unwrap(topology)->missing().size();
}

const int32_t* dist_topology_missing_devices(const dist_topology* topology) {
  if (dist_topology_num_missing_devices(topology) == 0) return nullptr;
  return unwrap(topology)->missing().front().data();
}

dist_status dist_topology_task_at(const dist_topology* topology, const int32_t* coordinates,
                                  int32_t* out_task) {
  return guard([&]() -> Status {
    DevicePlace place;
    DIST_TRY(find(topology, coordinates, out_task, "out_task", "dist_topology_task_at", &place));
    *out_task = place.task;
    return kOk;
  });
}

dist_status dist_topology_device_at(const dist_topology* topology, const int32_t* coordinates,
                                    int32_t* out_device) {
  return guard([&]() -> Status {
    DevicePlace place;
    DIST_TRY(find(topology, coordinates, out_device, "out_device", "dist_topology_device_at", &place));
    *out_device = place.device;
    return kOk;
  });
}

dist_status dist_topology_cpu_at(const dist_topology* topology, const int32_t* coordinates,
                                 int32_t* out_cpu) {
  return guard([&]() -> Status {
    DevicePlace place;
    DIST_TRY(find(topology, coordinates, out_cpu, "out_cpu", "dist_topology_cpu_at", &place));
    return unwrap(topology)->cpu_of(place, out_cpu);
  });
}

dist_status dist_topology_device_name_at(const dist_topology* topology, const int32_t* coordinates,
                                         const char* job, char* out_name, size_t size_bytes) {
  return name_at(NameOf::kDevice, topology, coordinates, job, out_name, size_bytes,
                 "dist_topology_device_name_at");
}

dist_status dist_topology_host_name_at(const dist_topology* topology, const int32_t* coordinates,
                                       const char* job, char* out_name, size_t size_bytes) {
  return name_at(NameOf::kHost, topology, coordinates, job, out_name, size_bytes,
                 "dist_topology_host_name_at");
}

dist_status dist_topology_explain(const dist_topology* topology, dist_text_fn fn, void* user_data) {
  return guard([&]() -> Status {
    DIST_TRY(require(topology, "dist_topology_explain", "topology"));
    if (fn == nullptr) return invalid_argument("`dist_topology_explain()`: `fn` is `NULL`");
    const std::pmr::string text = unwrap(topology)->explain();
    fn(text.data(), text.size(), user_data);
    return kOk;
  });
}

namespace {

// `make` receives the topology.
template <class Make>
dist_status create(const char* call, dist_topology* topology, dist_device_assignment** out, Make&& make) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(topology, call, "topology"));
        DIST_TRY(require(out, call, "out_assignment"));
        Ref<DeviceAssignment> made;
        DIST_TRY(make(Ref<Topology>::share(capi::unwrap(topology)), &made));
        *out = reinterpret_cast<dist_device_assignment*>(made.take());
        return kOk;
      },
      call);
}

dist_status name_of(NameOf of, const dist_device_assignment* assignment, int32_t replica,
                    int32_t logical_device, const char* job, char* out_name, size_t size_bytes,
                    const char* call) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(assignment, call, "assignment"));
        DIST_TRY(require(out_name, call, "out_name"));
        DevicePlace place;
        DIST_TRY(unwrap(assignment)->place(replica, logical_device, &place));
        return write_name(of, place, job, out_name, size_bytes);
      },
      call);
}

}  // namespace

dist_status dist_device_assignment_build(dist_topology* topology, const int32_t* computation_shape,
                                         const int32_t* computation_stride, size_t ndim, int32_t num_replicas,
                                         dist_device_order device_order,
                                         dist_device_assignment** out_assignment) {
  const auto sizes = [ndim](const int32_t* numbers) {
    return std::span<const int32_t>(numbers, numbers == nullptr ? 0 : ndim);
  };
  const Computation computation{sizes(computation_shape), sizes(computation_stride), num_replicas,
                                device_order};
  return create("dist_device_assignment_build", topology, out_assignment,
                [&](Ref<Topology> on, Ref<DeviceAssignment>* out) {
                  return build_assignment(std::move(on), computation, out);
                });
}

dist_status dist_device_assignment_create(dist_topology* topology, const int32_t* core_assignment,
                                          int32_t num_replicas, int32_t num_logical_devices, size_t ndim,
                                          dist_device_assignment** out_assignment) {
  return create("dist_device_assignment_create", topology, out_assignment,
                [&](Ref<Topology> on, Ref<DeviceAssignment>* out) {
                  return DeviceAssignment::create(std::move(on), core_assignment, num_replicas,
                                                  num_logical_devices, ndim, out);
                });
}

dist_status dist_device_assignment_create_single(dist_topology* topology,
                                                 dist_device_assignment** out_assignment) {
  return create("dist_device_assignment_create_single", topology, out_assignment,
                [](Ref<Topology> on, Ref<DeviceAssignment>* out) {
                  constexpr Coordinates kFirst{};
                  return DeviceAssignment::create(std::move(on), kFirst.data(), 1, 1, kMeshNdim, out);
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
    std::copy_n(at, kMeshNdim, out_coordinates);
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
    return unwrap(assignment)->lookup_replicas(task, logical_device, {out_replicas, capacity}, out_n);
  });
}

Status dist::capi::read_partition(const dist_partition* given, const char* call, Partition* out) noexcept {
  DIST_TRY(require(given, call, "partition"));
  dist_partition known;
  DIST_TRY(read_options(given, &known, "dist_partition"));
  DIST_TRY(check_list(known.shape, known.ndim, call, "partition->shape", "partition->ndim"));
  DIST_TRY(check_list(known.dimensions, known.num_dimensions, call, "partition->dimensions",
                      "partition->num_dimensions"));
  out->kind = or_default(known.kind, DIST_PARTITION_SPLIT);
  out->shape = {known.shape, known.ndim};
  out->dimensions = {known.dimensions, known.num_dimensions};
  out->num_logical_devices = known.num_logical_devices;
  out->logical_device = known.logical_device;
  out->uneven = known.uneven != 0;
  out->spmd = known.spmd != 0;
  return kOk;
}

void dist_partition_init(dist_partition* partition, uint32_t struct_size_bytes) {
  init_options(partition, struct_size_bytes, DIST_PARTITION_INIT);
}

dist_status dist_partition_check(const dist_partition* partition) {
  return guard([&]() -> Status {
    Partition known;
    DIST_TRY(read_partition(partition, "dist_partition_check", &known));
    return known.check();
  });
}

dist_status dist_partition_shard(const dist_partition* partition, int32_t logical_device, int64_t* out_tile,
                                 int64_t* out_begin, int64_t* out_size, int64_t* out_elements) {
  constexpr const char* kCall = "dist_partition_shard";
  return guard([&]() -> Status {
    Partition known;
    DIST_TRY(read_partition(partition, kCall, &known));
    DIST_TRY(known.check());
    if (!known.shape.empty()) {
      DIST_TRY(require(out_begin, kCall, "out_begin"));
      DIST_TRY(require(out_size, kCall, "out_size"));
    }
    return known.shard(logical_device, {out_tile, out_begin, out_size, out_elements});
  });
}
