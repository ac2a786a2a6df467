// SPDX-License-Identifier: Apache-2.0
// What a function of the cross-replica context needs of its strategy, which lies above.
#pragma once

#include <cstdint>

#include "core/base/memory.hpp"
#include "core/cross_device/arena.hpp"

namespace dist {

struct CrossReplica {
  Memory* memory;
  int32_t num_replicas;
  Arena* arena;
};

}  // namespace dist
