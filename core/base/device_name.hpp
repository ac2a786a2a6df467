// SPDX-License-Identifier: Apache-2.0
// Parses and formats device names in TensorFlow's spelling: "/job:localhost/replica:0/task:0/device:CPU:1",
// "/device:CPU:1", "CPU:1", "cpu:1". A device name only identifies the place of a replica. Whatever device
// type it contains, the replica is a host thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"

namespace dist {

// A device of this process, by its canonical name.
class DeviceName {
 public:
  // "/job:localhost/replica:0/task:0/device:CPU:0"
  DeviceName() noexcept : DeviceName("CPU", 0) {}
  DeviceName(const char* type, int32_t index) noexcept;

  // Returns the name of the same device in a task of a cluster. `job` has at most kMostJob bytes.
  static constexpr std::size_t kMostJob = 32;
  DeviceName of_task(const char* job, int32_t task) const noexcept;

  // Parts that `text` omits default to those of CPU:0. `what` begins messages: "devices[2]".
  static Status parse(const char* text, const char* what, DeviceName* out) noexcept;

  const char* c_str() const noexcept { return text_; }
  bool operator==(const DeviceName& other) const noexcept;

 private:
  char text_[112];
};

}  // namespace dist
