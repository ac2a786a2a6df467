// SPDX-License-Identifier: Apache-2.0
// Names of devices, as TensorFlow spells them: "/job:localhost/replica:0/task:0/device:CPU:1",
// "/device:CPU:1", "CPU:1", "cpu:1". A device is a name for the place of a replica: what runs there is a host
// thread, whatever its type says.
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

  // The same device, of a task of a cluster. `job` has at most kMostJob bytes.
  static constexpr std::size_t kMostJob = 32;
  DeviceName of_task(const char* job, int32_t task) const noexcept;

  // Parts that `text` leaves out are those of CPU:0. `what` begins messages: "devices[2]".
  static Status parse(const char* text, const char* what, DeviceName* out) noexcept;

  const char* c_str() const noexcept { return text_; }
  bool operator==(const DeviceName& other) const noexcept;

 private:
  char text_[112];
};

}  // namespace dist
