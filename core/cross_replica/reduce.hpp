// SPDX-License-Identifier: Apache-2.0
// Reductions of values from outside the replicas: by the host's thread, with oneTBB's help, no group
// involved. The arithmetic is that of the collectives, so are the bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// Reduces to one tensor, leaf by leaf. `axes` NULL: none. See dist_reduce().
Status reduce(const CrossReplica& context, dist_reduce_op op, Value& value, const int32_t* axes,
              std::size_t num_axes, ValueRef* out);

}  // namespace dist
