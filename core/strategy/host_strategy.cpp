// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/host_strategy.hpp"

#include "core/strategy/strategy.hpp"

namespace dist {

// Variables support one copy per replica, or one copy for all. Anything in between is reported as not
// implemented.
Status HostLayout::ask_copies(const HostStrategy& host, int32_t num_replicas, StrategyOptions* options) {
  bool own = true;
  bool shared = true;
  for (int32_t r = 0; r < num_replicas; ++r) {
    const int32_t copy = host.copy_of_replica(r, num_replicas, host.user_data);
    if (copy < 0 || copy >= num_replicas) {
      return invalid_argument(
          "functions.`copy_of_replica`() returned %d for replica %d, but copies are 0 to %d", copy, r,
          num_replicas - 1);
    }
    own = own && copy == r;
    shared = shared && copy == 0;
  }
  if (!own && !shared) {
    return fail(DIST_UNIMPLEMENTED,
                "functions.`copy_of_replica`(): some replicas share a copy and others do not. Return the "
                "replica's id for each replica, or 0 for all of them.");
  }
  options->kind = own ? DIST_STRATEGY_MIRRORED : DIST_STRATEGY_CENTRAL_STORAGE;
  return kOk;
}

Status HostLayout::ask(const HostStrategy& host, int32_t num_replicas, StrategyOptions* options) {
  if (has_one_replica(options->kind)) {
    return invalid_argument(
        "functions is set, but the one-device and default strategies do not use it. Use another kind.");
  }
  if (options->cross_device != nullptr) {
    return invalid_argument(
        "functions and `cross_device` are both set, and both define the reduction. Set one of them.");
  }
  if (host.copy_of_replica != nullptr) DIST_TRY(ask_copies(host, num_replicas, options));
  if (host.device_of_replica != nullptr) {
    if (!options->devices.empty()) {
      return invalid_argument("functions.`device_of_replica`() and devices are both set. Set one of them.");
    }
    for (int32_t r = 0; r < num_replicas; ++r) {
      devices_.push_back(host.device_of_replica(r, host.user_data));
    }
    options->devices = devices_;
  }
  const HostFunctions& functions = host.functions;
  if (functions.reduce == nullptr && functions.broadcast == nullptr && functions.gather == nullptr)
    return kOk;
  CrossDeviceOptions wanted;
  wanted.kind = DIST_CROSS_DEVICE_HOST;
  wanted.host = functions;
  DIST_TRY(CrossDevice::create(memory_, wanted, &cross_device_));
  options->cross_device = cross_device_.get();
  return kOk;
}

}  // namespace dist
