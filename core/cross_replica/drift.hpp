// SPDX-License-Identifier: Apache-2.0
// Checks whether the copies of a variable are still equal.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/value/variable.hpp"

namespace dist {

// Where the copies differ. Numbers are -1 if they do not differ.
struct Drift {
  int32_t num_copies = 0;              // compared copies; 0 if the copies of the variable need not be equal
  GlobalReplica replica = kNoReplica;  // lowest replica whose copy is not the most common one
  GlobalReplica expected = kNoReplica;
  int64_t element = -1;  // first element that differs anywhere
};

// Fails with DATA_LOSS if copies differ. The error's fields then contain the replica, the variable and both
// elements, and *out is set as well. elements.hpp defines equality. All workers must call this together, and
// all get the same result.
Status check_drift(const CrossReplica& context, const Variable& variable, Drift* out);

}  // namespace dist
