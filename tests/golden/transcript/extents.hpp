// SPDX-License-Identifier: Apache-2.0
// Determines the size of a call's arrays from its other arguments and their objects.
#pragma once

#include <dist/dist.h>

#include <cstddef>
#include <string_view>
#include <type_traits>

namespace golden::transcript {

struct Extents {
  std::size_t n = 0;          // of all arrays except the following
  bool has_arrays = false;    // "n" is a parameter
  bool is_divided = false;    // the call concerns a partition, and `ndim` is that of the tensor
  std::size_t ndim = 0;       // numbers in a position of a mesh or a tensor
  std::size_t positions = 0;  // positions of devices
  std::size_t missing = 0;    // positions without a device
  std::size_t found = 0;      // number of replicas or tasks
  std::size_t bytes = 0;

  std::size_t of(std::string_view key) const noexcept {
    if (key == "device_coordinates" || key == "core_assignment") return positions * ndim;
    if (key == "missing_devices") return missing * ndim;
    if (key == "out_replicas" || key == "out_indices" || key == "out_tasks") return found;
    for (const std::string_view one :
         {"mesh_shape", "computation_shape", "computation_stride", "coordinates", "out_coordinates",
          "out_tile", "out_begin", "out_size", "shape", "out_partitions"}) {
      if (key == one) return ndim;
    }
    return n;
  }

  // Takes the call's arguments in order.
  template <class T>
  void operator()(std::string_view key, T argument) {
    using Pointed = std::remove_const_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_integral_v<T>) {
      number(key, argument < T{} ? 0 : static_cast<std::size_t>(argument));
    } else if constexpr (std::is_pointer_v<T>) {
      if (argument == nullptr) return;
      if constexpr (std::is_same_v<Pointed, dist_topology>) topology(argument);
      if constexpr (std::is_same_v<Pointed, dist_device_assignment>) assignment(argument);
      if constexpr (std::is_same_v<Pointed, dist_partition>) partition(*argument);
      if constexpr (std::is_same_v<Pointed, dist_value>) value(argument);
      if constexpr (std::is_same_v<T, std::size_t*>) number(key, *argument);
    }
  }

 private:
  void number(std::string_view key, std::size_t size) noexcept {
    for (const std::string_view one : {"n", "num_axes", "num_specs", "num_resolvers", "num_jobs"}) {
      if (key == one) n = size;
    }
    if (key == "n") has_arrays = true;
    if (key == "ndim") ndim = size;
    if (key == "num_tasks" || key == "num_replicas") positions = size;
    if (key == "num_devices_per_task" || key == "num_logical_devices") positions *= size;
    if (key == "out_n") found = size;
    if (key == "size_bytes" || key == "out_size_bytes") bytes = size;
  }
  void topology(const dist_topology* of) noexcept {
    ndim = static_cast<std::size_t>(dist_topology_mesh_rank(of));
    missing = dist_topology_num_missing_devices(of);
    positions = static_cast<std::size_t>(dist_topology_num_tasks(of)) *
                static_cast<std::size_t>(dist_topology_num_devices_per_task(of));
  }
  void assignment(const dist_device_assignment* of) noexcept {
    ndim = static_cast<std::size_t>(dist_topology_mesh_rank(dist_device_assignment_topology(of)));
    positions = static_cast<std::size_t>(dist_device_assignment_num_replicas(of)) *
                static_cast<std::size_t>(dist_device_assignment_num_logical_devices(of));
  }
  void partition(const dist_partition& of) noexcept {
    is_divided = true;
    ndim = of.ndim;
  }
  void value(const dist_value* of) noexcept {
    dist_partition of_it = DIST_PARTITION_INIT;
    if (dist_value_kind_of(of) == DIST_VALUE_SHARDED && dist_value_partition(of, &of_it) == DIST_OK)
      partition(of_it);
  }
};

}  // namespace golden::transcript
