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
  const int64_t* splits;      // all_to_all: sizes of the parts of `in`; NULL: equal ones
  std::size_t contributions;
};

}  // namespace dist
