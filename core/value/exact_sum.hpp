// SPDX-License-Identifier: Apache-2.0
// The exact sum of doubles. Finite numbers are summed without rounding; infinities and NaNs are counted.
// Adding two ExactSums is the same as adding all their doubles, so the sums of R replicas can be combined
// exactly. It consists of integers, so that a variable can hold it as i64 elements.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/kernel/superaccumulator.hpp"

namespace dist {

class ExactSum {
 public:
  // At most 2^30 doubles may be added between two calls of settle().
  void add(double value) noexcept {
    if (std::isfinite(value)) [[likely]] {
      finite_.add(value);
    } else if (std::isnan(value)) {
      ++nans_;
    } else {
      ++(value > 0 ? infinities_ : negative_infinities_);
    }
  }
  // `other` must be settled.
  void add(const ExactSum& other) noexcept {
    finite_.add(other.finite_);
    nans_ += other.nans_;
    infinities_ += other.infinities_;
    negative_infinities_ += other.negative_infinities_;
  }
  void settle() noexcept { finite_.settle(); }

  // The sum, rounded to nearest. If some of the doubles are not finite, the result of adding them one after
  // the other.
  double value() const noexcept {
    if (nans_ != 0 || (infinities_ != 0 && negative_infinities_ != 0)) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    if (infinities_ != 0) return std::numeric_limits<double>::infinity();
    if (negative_infinities_ != 0) return -std::numeric_limits<double>::infinity();
    Superaccumulator sum = finite_;
    return sum.round(false);
  }

 private:
  Superaccumulator finite_;
  int64_t nans_ = 0;
  int64_t infinities_ = 0;
  int64_t negative_infinities_ = 0;
};

static_assert(std::is_trivially_copyable_v<ExactSum> && sizeof(ExactSum) % sizeof(int64_t) == 0);

}  // namespace dist
