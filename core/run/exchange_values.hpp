// SPDX-License-Identifier: Apache-2.0
// Collectives on nested values. All leaves take part in one collective, and the results have the same
// structure.
#pragma once

#include "core/base/status.hpp"
#include "core/run/replica.hpp"
#include "core/value/value.hpp"

namespace dist {

// `call` specifies the collective (all_reduce or all_gather) and its options; its tensors are taken from the
// leaves. For a distributed value or a variable, the replica contributes its own component. Indexed slices
// are reduced by concatenating the rows and indices of all replicas in the order of their ids.
Status exchange_values(Replica& replica, const Member& member, Call call, Value& value, ValueRef* out);

}  // namespace dist
