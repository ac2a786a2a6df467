// SPDX-License-Identifier: Apache-2.0
#include "core/serve/instances_options.hpp"

namespace dist {
namespace {

dist_status call_create(Replica& replica, const Body& self) {
  const auto& options = *static_cast<const InstancesOptions*>(self.context);
  if (options.create_state != nullptr) {
    void* state = nullptr;
    if (const dist_status made = options.create_state(replica, options, &state); made != DIST_OK) return made;
    replica.set_host_state(state);
  }
  return options.warm_up == nullptr ? DIST_OK : options.warm_up(replica, options);
}

dist_status call_destroy(Replica& replica, const Body& self) {
  const auto& options = *static_cast<const InstancesOptions*>(self.context);
  void* const state = replica.host_state();
  replica.set_host_state(nullptr);
  if (state != nullptr && options.destroy_state != nullptr) options.destroy_state(state, options);
  return DIST_OK;
}

}  // namespace

Status InstancesOptions::create_state_of(Instance& at) {
  // Left behind by a thread that ended inside a callback.
  destroy_state_of(at, "dist_instances_open");
  if (create_state == nullptr && warm_up == nullptr) return kOk;
  return at.run_alone(Body{.call = call_create, .context = this},
                      {.call = "dist_instances_open", .uncounted = true});
}

void InstancesOptions::destroy_state_in(InnerPool& pool, const char* call) {
  if (pool.pool().host_state() == nullptr) return;
  (void)pool.pool().run(Body{.call = call_destroy, .context = this}, {.call = call, .uncounted = true});
}

void InstancesOptions::destroy_state_of(Instance& at, const char* call) {
  if (at.pool->pool().host_state() == nullptr) return;
  at.inside.store(true, std::memory_order_relaxed);
  destroy_state_in(*at.pool, call);
  at.inside.store(false, std::memory_order_release);
}

}  // namespace dist
