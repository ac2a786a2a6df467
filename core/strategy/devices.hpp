// SPDX-License-Identifier: Apache-2.0
// The device names of a strategy: one for each replica, and one for central storage.
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

  // `names` are in replica order; if empty, the names are CPU:0, CPU:1, ... for `num_replicas`. `parameter`
  // may be NULL.
  Status set(int32_t kind, std::span<const char* const> names, int32_t num_replicas, const char* parameter);

  // Adds the task of a cluster to all names.
  void belong_to(const char* job, int32_t task) noexcept;

  // One name per replica; empty for the default strategy.
  std::span<const DeviceName> workers() const noexcept { return workers_; }
  // The devices of variables: the single one of central storage, otherwise those of the replicas.
  std::span<const DeviceName> parameters() const noexcept;

  // Returns the name at `index`. `what` names the index in messages.
  static Status name(std::span<const DeviceName> devices, int32_t index, const char* what,
                     const char** out) noexcept;

 private:
  std::pmr::vector<DeviceName> workers_;
  DeviceName parameter_;
  bool central_ = false;
};

}  // namespace dist
