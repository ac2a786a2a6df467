// SPDX-License-Identifier: Apache-2.0
// Collectives on nests of values: the leaves travel as one list, and the results come back in the same
// structure.
#pragma once

#include "core/base/status.hpp"
#include "core/run/replica.hpp"
#include "core/value/value.hpp"

namespace dist {

// `call` says which collective (all_reduce or all_gather) and how; its tensors are the value's leaves. Of a
// distributed value or a variable the replica gives its own component. Indexed slices are reduced by joining
// all replicas' rows and indices in the order of ids.
Status exchange_values(Replica& replica, const Member& member, Call call, Value& value, ValueRef* out);

}  // namespace dist
