// SPDX-License-Identifier: Apache-2.0
// Runs a function on the logical devices of a replica: divides the arguments into one shard for each device,
// and joins the results.
#pragma once

#include "core/base/status.hpp"
#include "core/layout/shards.hpp"
#include "core/run/replica.hpp"
#include "core/run/run_values.hpp"
#include "core/value/value.hpp"

namespace dist {

// The team of a replica's logical devices, or an error if it has none. `call` is the host's function, for
// messages.
Status find_team(const Replica& replica, const char* call, DeviceTeam** out) noexcept;
// The team that a logical device belongs to, or an error if `device` is not a logical device.
Status find_own_team(const Replica& device, const char* call, DeviceTeam** out) noexcept;

// Extends the partition of a result to all devices. The results may be tensors of any shape, so before the
// run only the number of parts can be checked.
Status complete_result(int32_t num_devices, Partition* out) noexcept;

// Must be called on the replica's own thread, inside its function.
Status run_on_devices(Replica& replica, const ValuesFunction& function, Value* args, Value* kwargs,
                      const RunLimits& limits, Joining joining, ValueRef* out);

}  // namespace dist
