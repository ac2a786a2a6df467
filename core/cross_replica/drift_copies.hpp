// SPDX-License-Identifier: Apache-2.0
// Element-wise access to the copies of a variable in this process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/base/tensor.hpp"
#include "core/value/elements.hpp"
#include "core/value/variable.hpp"

namespace dist {

class VariableCopies {
 public:
  explicit VariableCopies(const Variable& variable) noexcept
      : variable_(variable), size_(static_cast<int64_t>(dtype_size(variable.dtype()))) {}

  int32_t count() const noexcept { return variable_.num_copies(); }
  dist_dtype dtype() const noexcept { return variable_.dtype(); }
  int64_t elements() const noexcept { return variable_.elements(); }
  int64_t element_bytes() const noexcept { return size_; }
  const std::byte* at(int32_t copy, int64_t element) const noexcept {
    return static_cast<const std::byte*>(variable_.component(LocalReplica{copy}).data) + element * size_;
  }

  // The first element in [first, last) in which any copy differs from copy 0, or `last`.
  int64_t first_difference(int64_t first, int64_t last) const noexcept {
    for (int32_t r = 1; r < count(); ++r) {
      const auto bytes = static_cast<std::size_t>((last - first) * size_);
      if (std::memcmp(at(0, first), at(r, first), bytes) == 0) continue;
      int64_t i = first;
      while (i < last && same_element(dtype(), at(0, i), at(r, i))) ++i;
      last = i;
    }
    return last;
  }

 private:
  const Variable& variable_;
  const int64_t size_;
};

}  // namespace dist
