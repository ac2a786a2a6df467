// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a fused optimizer step on a range of a parameter, after its gradient has been reduced. It
// supports f32 and f64. Every operation rounds to the parameter's type, except squares, which are computed
// and added in f64. Buffers need no alignment.
//
// Invariant: the code fixes the order in which squares are added, so all SIMD targets produce the same bits.
#pragma once

#include <cstddef>

#include "dist/types.h"

namespace dist {

struct SgdArguments {
  const std::byte* gradient;
  std::byte* const* parameters;  // the first copy is read; all are written
  std::byte* const* velocities;  // the first copy is read; all are written; NULL: no momentum
  std::size_t copies;            // 1 or more, at different addresses
  std::size_t count;             // elements
  double scale;                  // factor of the gradient
  double learning_rate;
  double momentum;
  bool stream;  // use non-temporal stores for copies that are not read, for very large parameters
};

//     velocity = momentum * velocity - learning_rate * (scale * gradient);   parameter = parameter + velocity
//     no momentum:   parameter = parameter - learning_rate * (scale * gradient)
void sgd(dist_dtype dtype, const SgdArguments& args) noexcept;

// x = scale * x
void scale_elements(dist_dtype dtype, std::byte* x, std::size_t count, double scale) noexcept;

// The sum of x^2. Elements i, i + 32, i + 64, ... are summed first, then the 32 sums in order.
double sum_of_squares(dist_dtype dtype, const std::byte* x, std::size_t count) noexcept;

}  // namespace dist
