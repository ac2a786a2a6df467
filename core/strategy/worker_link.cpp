// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/worker_link.hpp"

namespace dist {

Status WorkerLink::Way::join(InProcessNetwork* network, const WorkerPlace& place) noexcept {
  if (network == nullptr) return kOk;
  if (network->num_workers() != place.num_workers()) {
    return invalid_argument("network is for %d workers, and the cluster has %d", network->num_workers(),
                            place.num_workers());
  }
  DIST_TRY(network->join(place.me, &transport_));
  network_ = Ref<InProcessNetwork>::share(network);
  return kOk;
}

}  // namespace dist
