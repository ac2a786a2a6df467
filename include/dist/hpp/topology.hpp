// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/topology.hpp: topology.h for C++: topologies, device assignments and partitions. Arrays that are returned
// are borrowed from their object; arrays of coordinates have 4 numbers per device.
//
//     const auto topology = dist::topology::from_host();
//     const auto assignment = dist::device_assignment::build(topology, {1, 1, 2, 1});  // one replica on two cores
#ifndef DIST_HPP_TOPOLOGY_HPP
#define DIST_HPP_TOPOLOGY_HPP

#include "inspect.hpp"

namespace dist {

using coordinates = std::array<int32_t, 4>;

// ---- Topologies ------------------------------------------------------------------------------------------

// A topology that another object owns.
class topology_ref {
 public:
  topology_ref() noexcept = default;
  explicit topology_ref(dist_topology *handle) noexcept : handle_(handle) {}

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  [[nodiscard]] dist_topology *get() const noexcept { return handle_; }

  int32_t mesh_rank() const noexcept;
  const int32_t *mesh_shape() const noexcept;
  int32_t num_tasks() const noexcept;
  int32_t num_devices_per_task() const noexcept;
  const int32_t *device_coordinates() const noexcept;
  std::size_t num_missing_devices() const noexcept;
  const int32_t *missing_devices() const noexcept;
  // -1 if there is no device.
  int32_t task_at(const coordinates &position) const;
  int32_t device_at(const coordinates &position) const;
  int32_t cpu_at(const coordinates &position) const;
  std::string device_name_at(const coordinates &position, const char *job = nullptr) const;
  std::string host_name_at(const coordinates &position, const char *job = nullptr) const;
  std::string explain() const;

 protected:
  dist_topology *handle_ = nullptr;

 private:
  template <class Find>
  int32_t number_at(Find &&find, const coordinates &position) const {
    int32_t number = 0;
    check(find(handle_, position.data(), &number));
    return number;
  }
};

// Owns a topology. Assignments that were created with it keep it.
class topology : public topology_ref {
 public:
  // device_coordinates: [num_tasks, num_devices_per_task, 4]
  topology(const std::vector<int32_t> &mesh_shape, const std::vector<int32_t> &device_coordinates,
           int32_t num_tasks, int32_t num_devices_per_task) {
    if (static_cast<int64_t>(device_coordinates.size()) != int64_t{num_tasks} * num_devices_per_task * 4)
      throw error(DIST_INVALID_ARGUMENT, "each device of a topology has 4 coordinates");
    check(dist_topology_create(mesh_shape.data(), mesh_shape.size(),
                               device_coordinates.empty() ? nullptr : device_coordinates.data(), num_tasks,
                               num_devices_per_task, nullptr, &handle_));
  }
  // Of the CPUs that this process may use.
  static topology from_host();
  ~topology() { dist_topology_destroy(handle_); }
  topology(topology &&other) noexcept : topology_ref(std::exchange(other.handle_, nullptr)) {}
  topology &operator=(topology &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  topology(const topology &) = delete;
  topology &operator=(const topology &) = delete;

 private:
  explicit topology(dist_topology *handle) noexcept : topology_ref(handle) {}
  template <class Make>
  static topology made(Make &&make) {
    dist_topology *handle = nullptr;
    check(make(&handle));
    return topology(handle);
  }
};

// ---- Device assignments ----------------------------------------------------------------------------------

// An assignment that another object owns. Negative indices of replicas and logical devices count from the end: -1 is
// the last.
class device_assignment_ref {
 public:
  device_assignment_ref() noexcept = default;
  explicit device_assignment_ref(const dist_device_assignment *handle) noexcept : handle_(handle) {}

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  [[nodiscard]] const dist_device_assignment *get() const noexcept { return handle_; }

  topology_ref topology() const noexcept;
  int32_t num_replicas() const noexcept;
  int32_t num_logical_devices() const noexcept;
  const int32_t *core_assignment() const noexcept;
  dist::coordinates coordinates(int32_t replica, int32_t logical_device) const;
  int32_t device(int32_t replica = 0, int32_t logical_device = 0) const;
  std::string device_name(int32_t replica = 0, int32_t logical_device = 0, const char *job = nullptr) const;
  std::string host_name(int32_t replica = 0, int32_t logical_device = 0, const char *job = nullptr) const;
  // The replicas whose given logical device is in a task.
  std::vector<int32_t> lookup_replicas(int32_t task, int32_t logical_device) const;

 protected:
  const dist_device_assignment *handle_ = nullptr;
};

// Owns a device assignment. Strategies that were created with it keep it.
class device_assignment : public device_assignment_ref {
 public:
  // Distributes replicas as blocks of devices; the default stride is 1 everywhere.
  static device_assignment build(const topology_ref &topology, const std::vector<int32_t> &computation_shape,
                                 int32_t num_replicas = 1,
                                 dist_device_order device_order = DIST_DEVICE_ORDER_AUTO,
                                 const std::vector<int32_t> &computation_stride = {}) {
    if (!computation_shape.empty() && !computation_stride.empty() &&
        computation_shape.size() != computation_stride.size())
      throw error(DIST_INVALID_ARGUMENT, "computation_shape and computation_stride have one rank");
    return made([&](dist_device_assignment **out) {
      return dist_device_assignment_build(
          topology.get(), computation_shape.empty() ? nullptr : computation_shape.data(),
          computation_stride.empty() ? nullptr : computation_stride.data(),
          computation_shape.empty() ? computation_stride.size() : computation_shape.size(), num_replicas,
          device_order, out);
    });
  }
  // core_assignment: [num_replicas, num_logical_devices, 4]
  device_assignment(const topology_ref &topology, const std::vector<int32_t> &core_assignment,
                    int32_t num_replicas, int32_t num_logical_devices);
  // One replica of one logical device, at (0, 0, 0, 0).
  static device_assignment single(const topology_ref &topology);
  ~device_assignment() {
    // Created here, as a dist_device_assignment *.
    dist_device_assignment_destroy(const_cast<dist_device_assignment *>(handle_));
  }
  device_assignment(device_assignment &&other) noexcept { std::swap(handle_, other.handle_); }
  device_assignment &operator=(device_assignment &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  device_assignment(const device_assignment &) = delete;
  device_assignment &operator=(const device_assignment &) = delete;

 private:
  explicit device_assignment(dist_device_assignment *handle) noexcept : device_assignment_ref(handle) {}
  template <class Make>
  static device_assignment made(Make &&make) {
    dist_device_assignment *handle = nullptr;
    check(make(&handle));
    return device_assignment(handle);
  }
};

// ---- Topologies ------------------------------------------------------------------------------------------

inline int32_t topology_ref::mesh_rank() const noexcept { return dist_topology_mesh_rank(handle_); }

inline const int32_t *topology_ref::mesh_shape() const noexcept { return dist_topology_mesh_shape(handle_); }

inline int32_t topology_ref::num_tasks() const noexcept { return dist_topology_num_tasks(handle_); }

inline int32_t topology_ref::num_devices_per_task() const noexcept {
  return dist_topology_num_devices_per_task(handle_);
}

inline const int32_t *topology_ref::device_coordinates() const noexcept {
  return dist_topology_device_coordinates(handle_);
}

inline std::size_t topology_ref::num_missing_devices() const noexcept {
  return dist_topology_num_missing_devices(handle_);
}

inline const int32_t *topology_ref::missing_devices() const noexcept {
  return dist_topology_missing_devices(handle_);
}

inline int32_t topology_ref::task_at(const coordinates &position) const {
  return number_at(dist_topology_task_at, position);
}

inline int32_t topology_ref::device_at(const coordinates &position) const {
  return number_at(dist_topology_device_at, position);
}

inline int32_t topology_ref::cpu_at(const coordinates &position) const {
  return number_at(dist_topology_cpu_at, position);
}

inline std::string topology_ref::device_name_at(const coordinates &position, const char *job) const {
  return detail::text_in(detail::room_for(job), [&](char *out, std::size_t room) {
    return dist_topology_device_name_at(handle_, position.data(), job, out, room);
  });
}

inline std::string topology_ref::host_name_at(const coordinates &position, const char *job) const {
  return detail::text_in(detail::room_for(job), [&](char *out, std::size_t room) {
    return dist_topology_host_name_at(handle_, position.data(), job, out, room);
  });
}

inline std::string topology_ref::explain() const {
  return detail::text_of(
      [&](dist_text_fn fn, void *user_data) { return dist_topology_explain(handle_, fn, user_data); });
}

inline topology topology::from_host() {
  return made([](dist_topology **out) { return dist_topology_from_host(nullptr, out); });
}

// ---- Device assignments ----------------------------------------------------------------------------------

inline topology_ref device_assignment_ref::topology() const noexcept {
  return topology_ref(dist_device_assignment_topology(handle_));
}

inline int32_t device_assignment_ref::num_replicas() const noexcept {
  return dist_device_assignment_num_replicas(handle_);
}

inline int32_t device_assignment_ref::num_logical_devices() const noexcept {
  return dist_device_assignment_num_logical_devices(handle_);
}

inline const int32_t *device_assignment_ref::core_assignment() const noexcept {
  return dist_device_assignment_core_assignment(handle_);
}

inline dist::coordinates device_assignment_ref::coordinates(int32_t replica, int32_t logical_device) const {
  dist::coordinates position;
  check(dist_device_assignment_coordinates(handle_, replica, logical_device, position.data()));
  return position;
}

inline int32_t device_assignment_ref::device(int32_t replica, int32_t logical_device) const {
  int32_t found = 0;
  check(dist_device_assignment_device(handle_, replica, logical_device, &found));
  return found;
}

inline std::string device_assignment_ref::device_name(int32_t replica, int32_t logical_device,
                                                      const char *job) const {
  return detail::text_in(detail::room_for(job), [&](char *out, std::size_t room) {
    return dist_device_assignment_device_name(handle_, replica, logical_device, job, out, room);
  });
}

inline std::string device_assignment_ref::host_name(int32_t replica, int32_t logical_device,
                                                    const char *job) const {
  return detail::text_in(detail::room_for(job), [&](char *out, std::size_t room) {
    return dist_device_assignment_host_name(handle_, replica, logical_device, job, out, room);
  });
}

inline std::vector<int32_t> device_assignment_ref::lookup_replicas(int32_t task,
                                                                   int32_t logical_device) const {
  const int32_t all = num_replicas();
  std::vector<int32_t> found(all > 0 ? static_cast<std::size_t>(all) : 0);
  std::size_t n = 0;
  check(
      dist_device_assignment_lookup_replicas(handle_, task, logical_device, found.data(), found.size(), &n));
  found.resize(n);
  return found;
}

inline device_assignment::device_assignment(const topology_ref &topology,
                                            const std::vector<int32_t> &core_assignment, int32_t num_replicas,
                                            int32_t num_logical_devices) {
  if (static_cast<int64_t>(core_assignment.size()) != int64_t{num_replicas} * num_logical_devices * 4)
    throw error(DIST_INVALID_ARGUMENT, "each logical device of an assignment has 4 coordinates");
  dist_device_assignment *created = nullptr;
  check(dist_device_assignment_create(topology.get(),
                                      core_assignment.empty() ? nullptr : core_assignment.data(),
                                      num_replicas, num_logical_devices, 4, &created));
  handle_ = created;
}

inline device_assignment device_assignment::single(const topology_ref &topology) {
  return made([&](dist_device_assignment **out) {
    return dist_device_assignment_create_single(topology.get(), out);
  });
}

inline device_assignment_ref strategy_ref::device_assignment() const noexcept {
  return device_assignment_ref(dist_strategy_device_assignment(handle_));
}

}  // namespace dist

#endif  // DIST_HPP_TOPOLOGY_HPP
