// SPDX-License-Identifier: Apache-2.0
// KeptCall: a copy of a call and of its tensors' descriptors, which outlives those of the caller. The
// tensors' data are not copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "core/base/memory.hpp"
#include "core/collective/call.hpp"

namespace dist {

// The number of words that copies of a validated call need. `members`: the size of the group.
std::size_t kept_words(const Call& call, int members) noexcept;
// Copies the call to `place`, which has room for kept_words().
Call kept_in(uint64_t* place, const Call& call, int members) noexcept;

class KeptCall {
 public:
  explicit KeptCall(Memory& memory) noexcept : place_(&memory) {}

  // Throws std::bad_alloc; then nothing is kept.
  void keep(const Call& call, int members);
  const Call& call() const noexcept { return call_; }

 private:
  Call call_;
  std::pmr::vector<uint64_t> place_;  // words, because the host's allocator need not align bytes
};

}  // namespace dist
