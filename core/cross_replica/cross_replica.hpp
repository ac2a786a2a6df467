// SPDX-License-Identifier: Apache-2.0
// CrossReplica: what the cross-replica operations need from their strategy. The strategy itself is in a
// folder above this one, so they cannot use it.
#pragma once

#include <cstdint>

#include "core/base/arena.hpp"
#include "core/base/memory.hpp"
#include "core/base/replicas.hpp"
#include "dist/types.h"

namespace dist {

class AcrossWorkers;
class CrossDevice;

struct CrossReplica {
  Memory* memory;
  ReplicaCount replicas;
  Arena* arena;
  dist_strategy_kind kind = DIST_STRATEGY_MIRRORED;
  const CrossDevice* cross_device = nullptr;  // NULL: libdist reduces
  dist_numerics numerics = DIST_NUMERICS_ORDERED;
  AcrossWorkers* workers = nullptr;  // NULL: all replicas are in this process
};

}  // namespace dist
