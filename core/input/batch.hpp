// SPDX-License-Identifier: Apache-2.0
// Batches of elements that a source gave: tensors, texts, composites or nests of them. The batch has the
// structure of the elements, with a leaf (core/input/leaf.hpp) for each of their parts.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/input/leaf.hpp"
#include "core/value/value.hpp"

namespace dist {

// What a batch takes of an element.
struct Slice {
  ValueRef element;
  int64_t index = 0;  // its number, for messages
  int64_t first = 0;  // of its examples, where it is a batch itself
  int64_t count = 0;  // 0: the element only shows what a batch without examples is like
};

// Stacks elements of equal structure, dtypes and shapes along a new first dimension, which is split over the
// replicas. At least one slice.
Status stack_elements(Memory& memory, std::span<const Slice> slices, Parts parts, ValueRef* out);

// Joins the slices' examples one after another and splits them over the replicas. The elements are batches,
// whose first dimension counts examples. At least one slice.
Status split_elements(Memory& memory, std::span<const Slice> slices, Parts parts, ValueRef* out);

// How many examples an element that is a batch has: the first dimension of each of its tensors.
Status count_examples(const Value& element, int64_t index, int64_t* out);

// OK where an element can be given to replicas as it is.
Status check_whole(const Value& element, int64_t index) noexcept;

}  // namespace dist
