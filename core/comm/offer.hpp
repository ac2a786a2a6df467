// SPDX-License-Identifier: Apache-2.0
// Offer: the tensors that a member brings to a round, as its peers see them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dist/types.h"

namespace dist {

// Valid while the member is in the round. What all members have in common (how many tensors, their dtypes)
// is in their signatures, not here.
struct Offer {
  // The first tensors' data: with one dense tensor all that peers need. Together with the head of the slot
  // that the offer is in, the fields down to `strided` are one cache line; another costs another way between
  // cores.
  const std::byte* in_data;
  std::byte* out_data;
  const dist_tensor* in;  // `contributions` lists of n tensors, one after another; NULL: none
  int16_t destination;    // permute: the rank that gets `in`, and the one whose comes; -1: none
  int16_t source;
  bool strided;  // some tensor has gaps

  const dist_tensor* out;     // n tensors; NULL: none
  const dist_tensor* states;  // reduce_apply: lists of n tensors; NULL: none
  const double* weights;      // one a contribution; NULL: all count alike
  // all_to_all: where the parts of `in` begin along the axis, and at last where they end; NULL: equal parts.
  const int64_t* offsets;
  std::size_t contributions;
  // Of the first tensor, where parts are joined or cut off: the size along the axis of the member's part, and
  // of what it has whole; 0: it has none. An all_to_all's input is its part.
  int64_t part;
  int64_t whole;
};

}  // namespace dist
