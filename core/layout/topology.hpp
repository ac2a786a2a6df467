// SPDX-License-Identifier: Apache-2.0
// Topology: a mesh of devices as in TensorFlow's Topology: its shape, and the positions of each task's
// devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/layout/mesh.hpp"

namespace dist {

// The device at a position. In a hole, both numbers are -1.
struct DevicePlace {
  int32_t task = -1;
  int32_t device = -1;  // within the task
};

// The CPUs of a host as devices.
struct HostCpus {
  std::span<const int32_t> cpus;  // the system's number for each device of task 0
  bool by_hwloc;                  // false: only the CPUs' numbers are known
};

class Topology final : public Counted {
 public:
  // device_coordinates[(task * devices + device) * ndim + axis]. If two devices have the same position, the
  // later one is used.
  static Status create(Memory& memory, std::span<const int32_t> mesh_shape, const int32_t* device_coordinates,
                       int32_t num_tasks, int32_t num_devices_per_task, Ref<Topology>* out);
  // The same for the CPUs of the host.
  static Status create(Memory& memory, std::span<const int32_t> mesh_shape, const int32_t* device_coordinates,
                       const HostCpus& host, Ref<Topology>* out);

  const Mesh& mesh() const noexcept { return mesh_; }
  int32_t num_tasks() const noexcept { return num_tasks_; }
  int32_t num_devices_per_task() const noexcept { return num_devices_per_task_; }
  // As the caller passed them, including negative ones.
  std::span<const int32_t> device_coordinates() const noexcept { return device_coordinates_; }
  // The holes, in row-major order.
  std::span<const Coordinates> missing() const noexcept { return missing_; }
  DevicePlace at(std::size_t position) const noexcept { return places_[position]; }
  Status at(const int32_t* coordinates, DevicePlace* out) const noexcept;

  bool is_host() const noexcept { return is_host_; }  // whether the devices are this host's CPUs
  // The CPU of the host that corresponds to a device; -1 for a hole. Fails with FAILED_PRECONDITION if the
  // devices are not this host's CPUs.
  Status cpu_of(DevicePlace place, int32_t* out) const noexcept;

  // A description in lines of the form "subject: words".
  std::pmr::string explain() const;

 private:
  template <class T, class... Arguments>
  friend Ref<T> make_counted(Memory& memory, Arguments&&... arguments);

  explicit Topology(Memory& memory)
      : Counted(memory), device_coordinates_(&memory), places_(&memory), missing_(&memory), cpus_(&memory) {}
  Status place(std::span<const int32_t> mesh_shape, const int32_t* device_coordinates, int32_t num_tasks,
               int32_t num_devices_per_task);

  Mesh mesh_;
  int32_t num_tasks_ = 0;
  int32_t num_devices_per_task_ = 0;
  std::pmr::vector<int32_t> device_coordinates_;
  std::pmr::vector<DevicePlace> places_;  // by position
  std::pmr::vector<Coordinates> missing_;
  std::pmr::vector<int32_t> cpus_;
  bool is_host_ = false;
  bool by_hwloc_ = false;
};

// The name of a device is "/job:worker/task:0/device:TPU:1", or "/task:0/device:TPU:1" without a job. The
// name of its host is ".../device:CPU:0".
enum class NameOf { kDevice, kHost };
// Writes the name to `out`, which has `size` bytes. If these are too few, fails with INVALID_ARGUMENT and
// writes nothing.
Status write_name(NameOf of, DevicePlace place, const char* job, char* out, std::size_t size) noexcept;

}  // namespace dist
