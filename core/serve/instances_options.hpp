// SPDX-License-Identifier: Apache-2.0
// The options of a strategy's instances, and the host's functions that create and destroy their states.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/run/replica.hpp"
#include "core/serve/instance.hpp"

namespace dist {

struct InstancesOptions {
  bool helper_threads = false;  // also if the replicas are host threads
  std::size_t max_queued = 1024;
  int64_t spin_ns = 60'000;
  int64_t stuck_ns = 0;  // 0: never
  int32_t max_replaced = 4;
  // The host's functions, called on the thread of an instance; may be NULL.
  dist_status (*create_state)(Replica& replica, const InstancesOptions& self, void** out_state) = nullptr;
  void (*destroy_state)(void* state, const InstancesOptions& self) = nullptr;
  dist_status (*warm_up)(Replica& replica, const InstancesOptions& self) = nullptr;
  void (*host_create)() = nullptr;
  void (*host_destroy)() = nullptr;
  void (*host_warm_up)() = nullptr;
  void* user_data = nullptr;

  // Creates the instance's state and warms it up. If that fails, a state may exist.
  Status create_state_of(Instance& at);
  // Destroys the state in the pool, if there is one. `call`: the host's function, for messages.
  void destroy_state_in(InnerPool& pool, const char* call);
  // The same for an instance, which is inside a host callback meanwhile.
  void destroy_state_of(Instance& at, const char* call);
};

}  // namespace dist
