// SPDX-License-Identifier: Apache-2.0
// CrossReplica: what the cross-replica operations need from their strategy, which is in a folder above this
// one.
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
  int32_t kind = DIST_STRATEGY_MIRRORED;
  const CrossDevice* cross_device = nullptr;  // NULL: libdist reduces
  int32_t numerics = DIST_NUMERICS_ORDERED;
  AcrossWorkers* workers = nullptr;  // NULL: all replicas are in this process
};

}  // namespace dist
