// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/destination_device.hpp"

namespace dist {

Status device_of(Strategy& strategy, const Destination& destination, DeviceName* out) noexcept {
  const CrossReplica context = strategy.cross_replica();
  Place place;
  DIST_TRY(resolve(context, destination, &place));
  if (place.mirrored) {
    return invalid_argument(
        "destination: every replica has the result on its own device, so there is no single device");
  }
  const auto workers = strategy.devices().workers();
  const auto parameters = strategy.devices().parameters();
  if (context.replicas.local() == 1) {
    // Values stay unchanged on their devices.
    *out = workers.empty() ? DeviceName() : workers[0];
    return kOk;
  }
  if (destination.device == nullptr) {
    *out = destination.variable != nullptr ? parameters[0] : workers[0];
    return kOk;
  }
  int32_t replica;
  DIST_TRY(replica_of_device(destination.device, context.replicas.local(), &replica));
  if (replica >= 0) {
    *out = workers[static_cast<std::size_t>(replica)];
    return kOk;
  }
  return DeviceName::parse(destination.device, "destination", out);
}

}  // namespace dist
