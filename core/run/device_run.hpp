// SPDX-License-Identifier: Apache-2.0
// Runs of a function on the logical devices of a replica: each device gets its shards of the arguments, and
// their results are joined.
#pragma once

#include "core/base/status.hpp"
#include "core/mesh/shards.hpp"
#include "core/run/replica.hpp"
#include "core/run/run_values.hpp"
#include "core/value/value.hpp"

namespace dist {

// The logical devices of a replica that has some; `call` is the function's name in messages.
Status find_team(const Replica& replica, const char* call, DeviceTeam** out) noexcept;
// The team that a logical device is of, and the same for a replica that is none.
Status find_own_team(const Replica& device, const char* call, DeviceTeam** out) noexcept;

// The partition of a result, for as many devices. Tensors of any shape may come, so that only the number of
// parts can be checked before the run.
Status complete_result(int32_t num_devices, Partition* out) noexcept;

// On the replica's own thread, inside its function.
Status run_on_devices(Replica& replica, const ValuesFunction& function, Value* args, Value* kwargs,
                      const RunLimits& limits, Joining joining, ValueRef* out);

}  // namespace dist
