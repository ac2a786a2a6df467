// SPDX-License-Identifier: Apache-2.0
// Batches made of a source's elements: tensors, texts, composites, or nests of these. The batch has the
// structure of the elements, with a leaf (core/input/leaf.hpp) for each part.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/input/leaf.hpp"
#include "core/value/value.hpp"

namespace dist {

// The part of an element that goes into a batch.
struct Slice {
  ValueRef element;
  int64_t index = 0;  // number of the element, for messages
  int64_t first = 0;  // first of its examples, if the element is a batch
  int64_t count = 0;  // 0: the element serves only as the model of a batch without examples
};

// Stacks elements of equal structure, dtypes and shapes along a new first dimension, which is split over the
// replicas. Needs at least one slice.
Status stack_elements(Memory& memory, std::span<const Slice> slices, Parts parts, ValueRef* out);

// Concatenates the examples of the slices and splits them over the replicas. The elements are batches; their
// first dimension is the number of examples. Needs at least one slice.
Status split_elements(Memory& memory, std::span<const Slice> slices, Parts parts, ValueRef* out);

// The number of examples in an element that is a batch: the first dimension of each of its tensors.
Status count_examples(const Value& element, int64_t index, int64_t* out);

// Checks that replicas can receive an element unchanged.
Status check_whole(const Value& element, int64_t index) noexcept;

}  // namespace dist
