// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes TensorFlow's TopologyProto. The encoder writes the bytes that TensorFlow's own library
// writes; the decoder accepts any input.
//
//     1 mesh_shape, 2 num_tasks, 3 num_tpu_devices_per_task, 4 device_coordinates (int32; 1 and 4 repeated),
//     5 tpu_hardware_feature (a message)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/status.hpp"

namespace dist {

// Limit for a serialized topology that is decoded; larger than the largest one that is ever written.
inline constexpr std::size_t kMaxSerializedBytes = std::size_t{16} << 20;

struct TopologyFields {
  explicit TopologyFields(std::pmr::memory_resource* memory)
      : mesh_shape(memory), device_coordinates(memory) {}

  std::pmr::vector<int32_t> mesh_shape;
  std::pmr::vector<int32_t> device_coordinates;
  int32_t num_tasks = 0;
  int32_t num_devices_per_task = 0;
};

// The bytes that TensorFlow's SerializeToString() returns.
std::pmr::vector<uint8_t> serialize_topology(std::span<const int32_t> mesh_shape,
                                             std::span<const int32_t> device_coordinates, int32_t num_tasks,
                                             int32_t num_devices_per_task, std::pmr::memory_resource* memory);

// Accepts what protobuf's decoder accepts, including unknown fields and unpacked repeated numbers. Fails with
// INVALID_ARGUMENT if the bytes are malformed or too many. Does not validate the fields' values.
Status parse_topology(std::span<const uint8_t> bytes, TopologyFields* out);

}  // namespace dist
