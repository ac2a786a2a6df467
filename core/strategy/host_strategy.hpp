// SPDX-License-Identifier: Apache-2.0
// A strategy of the host's own: its functions say where replicas and their variables are, and reduce,
// broadcast and gather. What replicas do among themselves stays libdist's.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cross_replica/cross_device.hpp"

namespace dist {

struct StrategyOptions;

struct HostStrategy {
  // Which copy of a variable a replica reads; NULL: its own.
  int32_t (*copy_of_replica)(int32_t replica, int32_t num_replicas, void* user_data) = nullptr;
  // A device's name; NULL: CPU:<replica>.
  const char* (*device_of_replica)(int32_t replica, void* user_data) = nullptr;
  HostFunctions functions;  // none: libdist's
  void* user_data = nullptr;
  bool given = false;
};

// The answers of a host's functions, which are asked once.
class HostLayout {
 public:
  explicit HostLayout(Memory& memory) : memory_(memory), devices_(&memory) {}

  // Changes `options`, which then refer to this object, as the functions say.
  Status ask(const HostStrategy& host, int32_t num_replicas, StrategyOptions* options);

 private:
  Status ask_copies(const HostStrategy& host, int32_t num_replicas, StrategyOptions* options);

  Memory& memory_;
  std::pmr::vector<const char*> devices_;
  Ref<CrossDevice> cross_device_;
};

}  // namespace dist
