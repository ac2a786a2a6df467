// SPDX-License-Identifier: Apache-2.0
#include "core/layout/topology.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "core/base/text.hpp"

namespace dist {
namespace {

Status check_counts(int32_t num_tasks, int32_t num_devices_per_task) noexcept {
  if (num_tasks < 0) return invalid_argument("`num_tasks` is %d, but must be at least 0", num_tasks);
  if (num_devices_per_task < 0)
    return invalid_argument("`num_devices_per_task` is %d, but must be at least 0", num_devices_per_task);
  const int64_t devices = int64_t{num_tasks} * num_devices_per_task;
  if (devices > static_cast<int64_t>(kMaxPositions)) {
    return invalid_argument("%d tasks of %d devices have %lld devices, but a topology can have at most %zu",
                            num_tasks, num_devices_per_task, static_cast<long long>(devices), kMaxPositions);
  }
  return kOk;
}

[[gnu::format(printf, 2, 3)]] void add(std::pmr::string* text, const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  *text += line;
}

}  // namespace

Status Topology::place(std::span<const int32_t> mesh_shape, const int32_t* device_coordinates,
                       int32_t num_tasks, int32_t num_devices_per_task) {
  DIST_TRY(Mesh::make(mesh_shape, &mesh_));
  DIST_TRY(check_counts(num_tasks, num_devices_per_task));
  num_tasks_ = num_tasks;
  num_devices_per_task_ = num_devices_per_task;
  const auto devices = static_cast<std::size_t>(num_tasks) * static_cast<std::size_t>(num_devices_per_task);
  if (devices != 0 && device_coordinates == nullptr)
    return invalid_argument("`device_coordinates` is `NULL`, but there are %zu devices", devices);
  device_coordinates_.assign(device_coordinates, device_coordinates + devices * kMeshNdim);
  places_.resize(mesh_.positions());
  for (std::size_t i = 0; i < devices; ++i) {
    std::size_t position = 0;
    DIST_TRY(mesh_.find(&device_coordinates_[i * kMeshNdim], "a device's coordinates", &position));
    places_[position] = {static_cast<int32_t>(i) / num_devices_per_task,
                         static_cast<int32_t>(i) % num_devices_per_task};
  }
  missing_.reserve(static_cast<std::size_t>(std::count_if(
      places_.begin(), places_.end(), [](const DevicePlace& place) { return place.task < 0; })));
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].task < 0) missing_.push_back(mesh_.coordinates_of(i));
  }
  return kOk;
}

Status Topology::create(Memory& memory, std::span<const int32_t> mesh_shape,
                        const int32_t* device_coordinates, int32_t num_tasks, int32_t num_devices_per_task,
                        Ref<Topology>* out) {
  auto made = make_counted<Topology>(memory);
  DIST_TRY(made->place(mesh_shape, device_coordinates, num_tasks, num_devices_per_task));
  *out = std::move(made);
  return kOk;
}

Status Topology::create(Memory& memory, std::span<const int32_t> mesh_shape,
                        const int32_t* device_coordinates, const HostCpus& host, Ref<Topology>* out) {
  Ref<Topology> made;
  DIST_TRY(create(memory, mesh_shape, device_coordinates, 1, static_cast<int32_t>(host.cpus.size()), &made));
  made->cpus_.assign(host.cpus.begin(), host.cpus.end());
  made->is_host_ = true;
  made->by_hwloc_ = host.by_hwloc;
  *out = std::move(made);
  return kOk;
}

Status Topology::at(const int32_t* coordinates, DevicePlace* out) const noexcept {
  std::size_t position = 0;
  DIST_TRY(mesh_.find(coordinates, "the coordinates", &position));
  *out = places_[position];
  return kOk;
}

Status Topology::cpu_of(DevicePlace place, int32_t* out) const noexcept {
  if (!is_host_) return failed_precondition("the devices of this topology are not the CPUs of a host");
  *out = place.task < 0 ? -1 : cpus_[static_cast<std::size_t>(place.device)];
  return kOk;
}

std::pmr::string Topology::explain() const {
  std::pmr::string text(&memory());
  const Coordinates& shape = mesh_.shape();
  add(&text, "mesh: %d x %d x %d x %d%s\n", shape[0], shape[1], shape[2], shape[3],
      is_host_ ? " (packages x NUMA domains x cores x hardware threads)" : "");
  if (is_host_) {
    text += by_hwloc_ ? "found by: hwloc, and the CPUs that this process may use\n"
                      : "found by: the CPUs that this process may use; packages and caches are unknown (this "
                        "build has no hwloc, or hwloc failed), so each CPU counts as a core\n";
  }
  add(&text, "tasks: %d, with %d device%s each\n", num_tasks_, num_devices_per_task_,
      num_devices_per_task_ == 1 ? "" : "s");
  add(&text, "missing: %zu of %zu positions\n", missing_.size(), mesh_.positions());
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    const int32_t* const at = &device_coordinates_[i * kMeshNdim];
    add(&text, "device %zu: CPU %d, at %s\n", i, cpus_[i], CoordinatesText({at, kMeshNdim}).text);
  }
  return text;
}

Status write_name(NameOf of, DevicePlace place, const char* job, char* out, std::size_t size) noexcept {
  if (job != nullptr) DIST_TRY(check_name(job, "`job`"_m));
  const char* const prefix = job == nullptr ? "" : "/job:";
  const bool device = of == NameOf::kDevice;
  const auto print = [&](char* to, std::size_t room) {
    return static_cast<std::size_t>(std::snprintf(to, room, "%s%s/task:%d/device:%s:%d", prefix,
                                                  job == nullptr ? "" : job, place.task,
                                                  device ? "TPU" : "CPU", device ? place.device : 0));
  };
  const std::size_t bytes = print(nullptr, 0) + 1;
  if (bytes > size)
    return invalid_argument("`out_name` has room for %zu bytes, but the name needs %zu", size, bytes);
  print(out, size);
  return kOk;
}

}  // namespace dist
