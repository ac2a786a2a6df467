// SPDX-License-Identifier: Apache-2.0
// Handles of workers.h.
#pragma once

#include "core/engine/in_process.hpp"
#include "dist/workers.h"

namespace dist::capi {

inline InProcessNetwork* unwrap(dist_network* handle) noexcept {
  return reinterpret_cast<InProcessNetwork*>(handle);
}
inline dist_network* wrap(InProcessNetwork* network) noexcept {
  return reinterpret_cast<dist_network*>(network);
}

}  // namespace dist::capi
