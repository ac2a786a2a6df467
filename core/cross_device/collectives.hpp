// SPDX-License-Identifier: Apache-2.0
// Collectives on tensors: check what the caller gives, state it, choose the algorithm by size, run it.
//
//     bytes                     a CPU for every member               crowded
//     <= Line::kInlineBytes     the bytes travel in the line: one    the last to come reduces for all
//        (one tensor)           phase, everyone reduces everything
//     <= kAloneBytes            each reduces its part of all         "
//     <= kStaticBytes           inputs and stores it to all outputs  each its part
//     above                     the same, and who is done helps the others
//
// The fold is the same in all of them, so are the bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"
#include "core/comm/group.hpp"
#include "dist/types.h"

namespace dist {

// One member's call.
struct Caller {
  Group& group;
  int me;
  const char* tag;          // NULL: none
  int64_t timeout_ns;       // 0: the group's; < 0: none
  std::size_t cache_bytes;  // of the last-level cache: larger results are stored past it
};

Status all_reduce(const Caller& caller, dist_reduce_op op, const dist_tensor* in, dist_tensor* out,
                  std::size_t n) noexcept;

Status broadcast(const Caller& caller, int32_t root, const dist_tensor* in, dist_tensor* out,
                 std::size_t n) noexcept;

Status barrier(const Caller& caller) noexcept;

}  // namespace dist
