// SPDX-License-Identifier: Apache-2.0
// The connection of a strategy to the other workers of its cluster: a network that the host passed, or one
// with gRPC between the addresses in the cluster spec.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/job_settings.hpp"
#include "core/cluster/resolver.hpp"
#include "core/net/network.hpp"
#include "core/run/worker_link.hpp"
#include "core/strategy/worker_place.hpp"

namespace dist {

// The strategy options that determine the connection.
struct ConnectionOptions {
  dist_allocator allocator{};
  Network* network = nullptr;                      // NULL: see `transport`
  dist_transport transport = DIST_TRANSPORT_AUTO;  // used if network is NULL
  ClusterResolver* cluster_resolver = nullptr;
};

// Creates the connection of a worker that is not the only one. Does not block. If the options select
// DIST_TRANSPORT_NONE, or if they select DIST_TRANSPORT_AUTO and it is not known how to protect connections to the host
// names of the cluster, having no connection is not an error: operations that need it fail with the reason.
Status find_connection(Memory& memory, const ConnectionOptions& options, const WorkerPlace& place,
                       const JobSettings& settings, std::optional<WorkerLink::Connection>* out);

// The same for workers that form a new generation; the caller must call Network::form() next. `came_from`:
// the previous generation of this worker, or kNoGeneration.
Status find_connection_to_form(Memory& memory, const ConnectionOptions& options, const WorkerPlace& place,
                               const JobSettings& settings, const CameFrom& came_from,
                               std::optional<WorkerLink::Connection>* out);

}  // namespace dist
