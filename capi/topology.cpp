// SPDX-License-Identifier: Apache-2.0
// topology.h: topologies.
#include "capi/topology.hpp"

#include "core/topology/host_topology.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

// What all ways of making one have in common: `make` gets the memory.
template <class Make>
dist_status create(const char* call, const dist_topology_options* options, dist_topology** out, Make&& make) {
  return guard([&]() -> Status {
    DIST_TRY(require(out, call, "out_topology"));
    dist_topology_options given;
    DIST_TRY(read_options(options, &given, "dist_topology_options"));
    DIST_TRY(require_zero(given.reserved, "dist_topology_options.reserved"));
    if ((given.allocator.alloc == nullptr) != (given.allocator.free == nullptr))
      return invalid_argument("allocator: alloc and free come together, or neither");
    const auto memory = Ref<Memory>::adopt(Memory::create(given.allocator));
    if (!memory) return out_of_memory();
    Ref<Topology> made;
    DIST_TRY(make(*memory, &made));
    *out = wrap(made.take());
    return kOk;
  });
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
  return guard([&]() -> Status {
    DevicePlace place;
    DIST_TRY(find(topology, coordinates, out_name, "out_name", call, &place));
    return write_name(of, place, job, out_name, size_bytes);
  });
}

// Where arrays are empty there is no pointer to them.
const int32_t* or_null(const int32_t* numbers, std::size_t size) noexcept {
  return size == 0 ? nullptr : numbers;
}

}  // namespace

void dist_topology_options_init(dist_topology_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_topology_create(const int32_t* mesh_shape, size_t rank, const int32_t* device_coordinates,
                                 int32_t num_tasks, int32_t num_devices_per_task,
                                 const dist_topology_options* options, dist_topology** out_topology) {
  constexpr const char* kCall = "dist_topology_create";
  return create(kCall, options, out_topology, [&](Memory& memory, Ref<Topology>* out) -> Status {
    DIST_TRY(require(mesh_shape, kCall, "mesh_shape"));
    DIST_TRY(check_list(mesh_shape, rank, kCall, "mesh_shape", "rank"));
    return Topology::create(memory, {mesh_shape, rank}, device_coordinates, num_tasks, num_devices_per_task,
                            out);
  });
}

dist_status dist_topology_from_serialized(const void* bytes, size_t size_bytes,
                                          const dist_topology_options* options,
                                          dist_topology** out_topology) {
  constexpr const char* kCall = "dist_topology_from_serialized";
  return create(kCall, options, out_topology, [&](Memory& memory, Ref<Topology>* out) -> Status {
    DIST_TRY(require(bytes, kCall, "bytes"));
    DIST_TRY(check_list(bytes, size_bytes, kCall, "bytes", "size_bytes"));
    return Topology::parse(memory, {static_cast<const uint8_t*>(bytes), size_bytes}, out);
  });
}

dist_status dist_topology_from_host(const dist_topology_options* options, dist_topology** out_topology) {
  return create("dist_topology_from_host", options, out_topology, topology_from_host);
}

void dist_topology_destroy(dist_topology* topology) {
  if (topology != nullptr) unwrap(topology)->release();
}

int32_t dist_topology_mesh_rank(const dist_topology* topology) {
  return topology == nullptr ? 0 : static_cast<int32_t>(kMeshRank);
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

const uint8_t* dist_topology_serialized(const dist_topology* topology, size_t* out_size_bytes) {
  const std::span<const uint8_t> bytes =
      topology == nullptr ? std::span<const uint8_t>() : unwrap(topology)->serialized();
  if (out_size_bytes != nullptr) *out_size_bytes = bytes.size();
  return bytes.data();
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
    if (fn == nullptr) return invalid_argument("dist_topology_explain(): fn is NULL");
    const std::pmr::string text = unwrap(topology)->explain();
    fn(text.data(), text.size(), user_data);
    return kOk;
  });
}
