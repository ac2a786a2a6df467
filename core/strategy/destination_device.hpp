// SPDX-License-Identifier: Apache-2.0
// device_of(): the device of a destination, on which a result that is one tensor counts as lying.
#pragma once

#include "core/base/device_name.hpp"
#include "core/base/status.hpp"
#include "core/cross_replica/destination.hpp"
#include "core/strategy/strategy.hpp"

namespace dist {

// INVALID_ARGUMENT where every replica has the result on a device of its own.
Status device_of(Strategy& strategy, const Destination& destination, DeviceName* out) noexcept;

}  // namespace dist
