// SPDX-License-Identifier: Apache-2.0
// A call with copies of its tensors' descriptions, which the caller's may not outlive. The data are not
// copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "core/base/memory.hpp"
#include "core/collective/call.hpp"

namespace dist {

// How many words the copies of a checked call take; `members`: of the group.
std::size_t kept_words(const Call& call, int members) noexcept;
// The call with copies in kept_words() at `place`.
Call kept_in(uint64_t* place, const Call& call, int members) noexcept;

class KeptCall {
 public:
  explicit KeptCall(Memory& memory) noexcept : place_(&memory) {}

  // Throws std::bad_alloc, and then keeps nothing.
  void keep(const Call& call, int members);
  const Call& call() const noexcept { return call_; }

 private:
  Call call_;
  std::pmr::vector<uint64_t> place_;  // not of bytes, which the host's allocator may put anywhere
};

}  // namespace dist
