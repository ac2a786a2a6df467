// SPDX-License-Identifier: Apache-2.0
// The structure, dtypes and shapes of a dataset's batches, without making one.
#pragma once

#include "core/base/status.hpp"
#include "core/input/dataset.hpp"
#include "core/value/value.hpp"

namespace dist {

// The structure of the batches, with a text like "f32[?, 4]" for each tensor of each replica.
Status element_spec(Dataset& dataset, ValueRef* out);

}  // namespace dist
