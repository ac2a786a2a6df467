// SPDX-License-Identifier: Apache-2.0
// A strategy that the host defines with a table of functions: they specify where replicas and variables are
// placed, and implement reductions, broadcasts and gathers. Collectives between replicas are always
// libdist's.
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
  // The name of a device; NULL: CPU:<replica>.
  const char* (*device_of_replica)(int32_t replica, void* user_data) = nullptr;
  HostFunctions functions;  // if empty: libdist's
  void* user_data = nullptr;
  bool given = false;
};

// The results of the host's layout functions, which are called once.
class HostLayout {
 public:
  explicit HostLayout(Memory& memory) : memory_(memory), devices_(&memory) {}

  // Calls the functions and changes `options` accordingly. The options then refer to this object.
  Status ask(const HostStrategy& host, int32_t num_replicas, StrategyOptions* options);

 private:
  Status ask_copies(const HostStrategy& host, int32_t num_replicas, StrategyOptions* options);

  Memory& memory_;
  std::pmr::vector<const char*> devices_;
  Ref<CrossDevice> cross_device_;
};

}  // namespace dist
