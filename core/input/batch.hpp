// SPDX-License-Identifier: Apache-2.0
// Batches made of elements that a source handed over: tensors, or lists or dictionaries of them. The batch
// has the elements' structure, with a leaf (core/input/leaf.hpp) for each of their tensors.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/value/value.hpp"

namespace dist {

// Stacks elements of equal structure, dtypes and shapes along a new first dimension, which is split over the
// replicas. At least one element; `first_index` is the first one's number, for messages.
Status stack_elements(Memory& memory, int32_t num_replicas, std::span<const ValueRef> elements,
                      int64_t first_index, ValueRef* out);

// Splits the tensors of one element, which is a batch already, along their first dimension. It must be the
// same for all of them: it is the number of examples in the batch.
Status split_element(Memory& memory, int32_t num_replicas, const ValueRef& element, int64_t index,
                     ValueRef* out);

}  // namespace dist
