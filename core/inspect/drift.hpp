// SPDX-License-Identifier: Apache-2.0
// check_drift(): whether the copies of a variable are still equal.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/value/variable.hpp"

namespace dist {

// Where copies differ; the numbers are -1 where they do not.
struct Drift {
  int32_t num_copies = 0;              // compared; 0: of a variable whose copies need not be equal
  GlobalReplica replica = kNoReplica;  // the lowest whose copy differs from the most
  GlobalReplica expected = kNoReplica;
  int64_t element = -1;  // the first that differs anywhere
};

// DATA_LOSS where copies differ, with the replica, the variable and both elements in the error's fields;
// *out is written then too. What counts as equal: elements.hpp. Of several workers all ask, and all get the same.
Status check_drift(const CrossReplica& context, const Variable& variable, Drift* out);

}  // namespace dist
