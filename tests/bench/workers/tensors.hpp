// SPDX-License-Identifier: Apache-2.0
// The contributions of one worker, and the expected result.
#pragma once

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace bench {

class Tensors {
 public:
  Tensors(int me, int workers, std::size_t most)
      : in(most), out(most), me_(me), workers_(workers), sum_(workers * (workers + 1) / 2) {}

  std::vector<float> in, out;

  void fill(std::size_t elements) {
    for (std::size_t i = 0; i < elements; ++i) {
      in[i] = static_cast<float>(me_ + 1) * value(i);
      out[i] = -1;
    }
  }
  // `in_a_row` is the number of sums made in place. For one sum, also out of place, the result is exact
  // because all values are small integers.
  void check(const std::vector<float>& result, std::size_t elements, int in_a_row) const {
    const auto times = static_cast<float>(sum_ * std::pow(workers_, in_a_row - 1));
    const float rounding = in_a_row == 1 ? 0 : 1e-5F;
    for (std::size_t i = 0; i < elements; ++i) {
      const float wanted = times * value(i);
      if (!(std::abs(result[i] - wanted) <= rounding * wanted)) throw std::runtime_error("a wrong sum");
    }
  }

 private:
  static float value(std::size_t i) { return static_cast<float>(i % 1000 + 1); }
  int me_, workers_, sum_;
};

}  // namespace bench
