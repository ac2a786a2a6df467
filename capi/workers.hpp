// SPDX-License-Identifier: Apache-2.0
// Handle conversions for workers.h.
#pragma once

#include "core/net/network.hpp"
#include "dist/workers.h"

namespace dist::capi {

inline Network* unwrap(dist_network* handle) noexcept { return reinterpret_cast<Network*>(handle); }
inline dist_network* wrap(Network* network) noexcept { return reinterpret_cast<dist_network*>(network); }

}  // namespace dist::capi
