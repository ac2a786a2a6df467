// SPDX-License-Identifier: Apache-2.0
// What leads a strategy to the other workers of its cluster: the network that it was given, or one by gRPC between the
// addresses of the cluster.
#pragma once

#include <optional>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/resolver.hpp"
#include "core/run/worker_link.hpp"
#include "core/strategy/job_settings.hpp"
#include "core/strategy/strategy.hpp"
#include "core/strategy/worker_place.hpp"

namespace dist {

// The way of a worker that is not alone. With DIST_TRANSPORT_AUTO it is no error that nothing leads to the others: whoever
// needs them hears why. Waits for nobody.
Status find_way(Memory& memory, const StrategyOptions& options, const WorkerPlace& place,
                const JobSettings& settings, std::optional<WorkerLink::Way>* out);

}  // namespace dist
