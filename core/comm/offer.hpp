// SPDX-License-Identifier: Apache-2.0
// Offer: describes the tensors that a member brings to a round to its peers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dist/types.h"

namespace dist {

// Valid while the member is in the round. Properties that must be equal for all members, such as the number
// of tensors and their dtypes, are in the signatures instead.
struct Offer {
  // The data of the first tensors. If there is one dense tensor, peers read nothing else. The fields down to
  // `strided` share one cache line with the slot's fields before the offer, because a second line would have
  // to travel between cores as well.
  const std::byte* in_data;
  std::byte* out_data;
  uint32_t near_part;  // part() and whole(); kFar: does not fit
  uint32_t near_whole;
  int16_t destination;  // permute: the rank that receives `in`; -1: none
  int16_t source;       // permute: the rank whose `in` this member receives; -1: none
  bool strided;         // some tensor is strided

  const dist_tensor* in;      // `contributions` lists of n tensors, one after another; NULL: none
  const dist_tensor* out;     // n tensors; NULL: none
  const dist_tensor* states;  // reduce_apply: lists of n tensors; NULL: none
  const double* weights;      // one for each contribution; NULL: all weights are equal
  // all_to_all: where the parts of `in` begin along the axis, and where the last one ends; NULL: equal parts.
  const int64_t* offsets;
  std::size_t contributions;
  int64_t far_part;
  int64_t far_whole;

  // Sizes along the axis of the first tensor, if parts are joined or cut: the size of the member's part, and
  // of the whole tensor. 0: the member has none. The input of an all_to_all counts as the part.
  int64_t part() const noexcept { return near_part != kFar ? int64_t{near_part} : far_part; }
  int64_t whole() const noexcept { return near_whole != kFar ? int64_t{near_whole} : far_whole; }
  void set_sizes(int64_t part, int64_t whole) noexcept {
    near_part = near(part);
    near_whole = near(whole);
    far_part = part;
    far_whole = whole;
  }

 private:
  static constexpr uint32_t kFar = UINT32_MAX;
  static constexpr uint32_t near(int64_t size) noexcept {
    return size >= 0 && size < int64_t{kFar} ? static_cast<uint32_t>(size) : kFar;
  }
};

}  // namespace dist
