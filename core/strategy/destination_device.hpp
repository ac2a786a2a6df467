// SPDX-License-Identifier: Apache-2.0
// The device of a destination, on which a result that is a single tensor is considered to be placed.
#pragma once

#include "core/base/device_name.hpp"
#include "core/base/status.hpp"
#include "core/cross_replica/destination.hpp"
#include "core/strategy/strategy.hpp"

namespace dist {

// INVALID_ARGUMENT if the destination has one device for each replica.
Status device_of(Strategy& strategy, const Destination& destination, DeviceName* out) noexcept;

}  // namespace dist
