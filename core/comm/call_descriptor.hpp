// SPDX-License-Identifier: Apache-2.0
// CallDescriptor: describes the tensors that a member brings to a round to its peers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dist/types.h"

namespace dist {

// Valid while the member is in the round. Properties that must be equal for all members, such as the number
// of tensors and their dtypes, are in the signatures instead.
struct CallDescriptor {
  // The data of the first tensors. If there is one dense tensor, peers read nothing else. The fields down to
  // `strided` share one cache line with the slot's fields before the descriptor, because a second line would
  // have to travel between cores as well.
  const std::byte* in_data;
  std::byte* out_data;
  union {
    uint32_t near_part;   // part(); kFar: does not fit
    int32_t destination;  // permute, which has no parts: the rank that receives `in`; -1: none
  };
  union {
    uint32_t near_whole;  // whole(); kFar: does not fit
    int32_t source;       // permute: the rank whose `in` this member receives; -1: none
  };
  bool strided;  // some tensor is strided

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
  // of the whole tensor that it has. 0: the member has none. The input of an all_to_all counts as the part.
  int64_t part() const noexcept { return near_part != kFar ? int64_t{near_part} : far_part; }
  int64_t whole() const noexcept { return near_whole != kFar ? int64_t{near_whole} : far_whole; }

  // The fields in the slot's second cache line, which peers read only for lists and unusual tensors. In a
  // loop they usually have the same values as two rounds ago. They are then not written again, because the
  // line would first have to be fetched from a peer's cache. Call set_tail() before set_head(), because a
  // peer may already be polling the number in the first line.
  struct Tail {
    const dist_tensor* in;
    const dist_tensor* out;
    const dist_tensor* states;
    const double* weights;
    const int64_t* offsets;
    std::size_t contributions;
  };
  void set_tail(const Tail& tail) noexcept {
    if (in != tail.in || out != tail.out || states != tail.states || weights != tail.weights ||
        offsets != tail.offsets || contributions != tail.contributions) {
      in = tail.in;
      out = tail.out;
      states = tail.states;
      weights = tail.weights;
      offsets = tail.offsets;
      contributions = tail.contributions;
    }
    // Keeps the compiler from moving these stores behind those of set_head().
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  void set_sizes(int64_t part_size, int64_t whole_size) noexcept {
    near_part = near(part_size);
    near_whole = near(whole_size);
    if (near_part == kFar || near_whole == kFar) [[unlikely]] {
      far_part = part_size;
      far_whole = whole_size;
    }
  }
  // The fields in the first line, and the sizes.
  struct Head {
    const std::byte* in_data;
    std::byte* out_data;
    bool strided;
  };
  void set_head(const Head& head, int64_t part_size, int64_t whole_size) noexcept {
    set_sizes(part_size, whole_size);
    in_data = head.in_data;
    out_data = head.out_data;
    strided = head.strided;
  }
  // Sets the peers of a permute. Call this after set_head().
  void set_pair(int32_t to, int32_t from) noexcept {
    destination = to;
    source = from;
  }

 private:
  static constexpr uint32_t kFar = UINT32_MAX;
  static constexpr uint32_t near(int64_t size) noexcept {
    return size >= 0 && size < int64_t{kFar} ? static_cast<uint32_t>(size) : kFar;
  }
};

}  // namespace dist
