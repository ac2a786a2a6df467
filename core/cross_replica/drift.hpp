// SPDX-License-Identifier: Apache-2.0
// Checks whether the copies of a variable are still equal.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/value/variable.hpp"

namespace dist {

// The place where copies differ. Numbers are -1 if they do not.
struct Drift {
  int32_t num_copies = 0;              // compared copies; 0 if the copies of the variable need not be equal
  GlobalReplica replica = kNoReplica;  // lowest replica whose copy is not the most common one
  GlobalReplica expected = kNoReplica;
  int64_t element = -1;  // first element that differs anywhere
};

// DATA_LOSS if copies differ; the error's fields have the replica, the variable and both elements, and *out
// is set as well. elements.hpp defines equality. All workers must call it together, and get the same result.
Status check_drift(const CrossReplica& context, const Variable& variable, Drift* out);

}  // namespace dist
