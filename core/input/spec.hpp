// SPDX-License-Identifier: Apache-2.0
// element_spec(): the structure, dtypes and shapes of a dataset's batches, before one is made.
#pragma once

#include "core/base/status.hpp"
#include "core/input/dataset.hpp"
#include "core/value/value.hpp"

namespace dist {

// The batches' structure, with a text like "f32[?, 4]" for each tensor of each replica.
Status element_spec(Dataset& dataset, ValueRef* out);

}  // namespace dist
