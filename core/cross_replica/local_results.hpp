// SPDX-License-Identifier: Apache-2.0
// Returns the components of a value that belong to replicas of this process.
#pragma once

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/value/value.hpp"

namespace dist {

// Returns a tuple of a value's components, or of a variable's copies, in replica order. For a nest the tuple
// contains a nest for each replica; for any other value it contains the value itself.
Status local_results(const CrossReplica& context, Value& value, ValueRef* out);

}  // namespace dist
