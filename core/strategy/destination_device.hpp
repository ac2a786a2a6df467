// SPDX-License-Identifier: Apache-2.0
// The device of a destination: where a result that is one tensor counts as being.
#pragma once

#include "core/base/device_name.hpp"
#include "core/base/status.hpp"
#include "core/cross_replica/destination.hpp"
#include "core/strategy/strategy.hpp"

namespace dist {

// INVALID_ARGUMENT where every replica has the result on a device of its own.
Status device_of(Strategy& strategy, const Destination& destination, DeviceName* out) noexcept;

}  // namespace dist
