// SPDX-License-Identifier: Apache-2.0
// What leads a strategy to the other workers of its cluster: the network that it was given, or one by gRPC between the
// addresses of the cluster.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/job_settings.hpp"
#include "core/cluster/resolver.hpp"
#include "core/engine/network.hpp"
#include "core/run/worker_link.hpp"
#include "core/strategy/worker_place.hpp"

namespace dist {

// What a strategy's options say of it.
struct WayOptions {
  dist_allocator allocator{};
  Network* network = nullptr;               // NULL: as `transport` says
  int32_t transport = DIST_TRANSPORT_AUTO;  // where network is NULL
  ClusterResolver* cluster_resolver = nullptr;
};

// The way of a worker that is not alone. With DIST_TRANSPORT_AUTO it is no error that nothing leads to the others: whoever
// needs them hears why. Waits for nobody.
Status find_way(Memory& memory, const WayOptions& options, const WorkerPlace& place,
                const JobSettings& settings, std::optional<WorkerLink::Way>* out);

// The same, where the workers form a new generation: Network::form() is to come. `came_from`: the one that this worker was
// in, or kNoGeneration.
Status find_way_to_form(Memory& memory, const WayOptions& options, const WorkerPlace& place,
                        const JobSettings& settings, const CameFrom& came_from,
                        std::optional<WorkerLink::Way>* out);

}  // namespace dist
