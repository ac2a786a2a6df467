// SPDX-License-Identifier: Apache-2.0
// Checks that the workers of a dataset together read every example of its source exactly once.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/input/dataset.hpp"

namespace dist {

// Fails with DATA_LOSS, and names the first example that no worker or several workers read. Checks at most
// `limit` elements (0: all).
Status check_coverage(Dataset& dataset, int64_t limit);

}  // namespace dist
