// SPDX-License-Identifier: Apache-2.0
// Whether the workers of a dataset read every example of its source exactly once.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/input/dataset.hpp"

namespace dist {

// DATA_LOSS, whose message names the first example that no worker or several read. Looks at `limit` elements
// at most (0: all).
Status check_coverage(Dataset& dataset, int64_t limit);

}  // namespace dist
