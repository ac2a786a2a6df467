// SPDX-License-Identifier: Apache-2.0
// The devices of a strategy: a name for the place of each replica, and for that of central storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/device_name.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

class Devices {
 public:
  explicit Devices(Memory& memory) : workers_(&memory) {}

  // `names` in replica order; none: CPU:0, CPU:1 ... for `num_replicas`. `parameter` may be NULL.
  Status set(int32_t kind, std::span<const char* const> names, int32_t num_replicas, const char* parameter);

  // Says which task of a cluster all of them are of.
  void belong_to(const char* job, int32_t task) noexcept;

  // One for each replica. The default strategy has none.
  std::span<const DeviceName> workers() const noexcept { return workers_; }
  // Where variables are: central storage's one device, else those of the replicas.
  std::span<const DeviceName> parameters() const noexcept;

  // The name of one of these. `what` is the index's name in messages.
  static Status name(std::span<const DeviceName> devices, int32_t index, const char* what,
                     const char** out) noexcept;

 private:
  std::pmr::vector<DeviceName> workers_;
  DeviceName parameter_;
  bool central_ = false;
};

}  // namespace dist
