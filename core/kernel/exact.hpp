// SPDX-License-Identifier: Apache-2.0
// Kernels of REPRODUCIBLE sums: the exact sum of all contributions, rounded once.
//
//     for i in 0 .. count-1:
//       sum = the real number  src[0][i] + ... + src[num_src-1][i]
//       for d in 0 .. num_dst-1:  dst[d][i] = round(sum / divisor)
//
// Invariant: the result depends only on the multiset of contributions. Every order of the sources, every SIMD
// target and the plain C++ target "SCALAR" produce the same bits.
//
//   SUM (divisor 1)  The exact sum rounded to the dtype: to nearest, ties to even. Subnormals are kept, and
//                    the result overflows to infinity.
//   MEAN             Rounded more than once, always in the same way. For f16, bf16 and f32 the exact sum is
//                    rounded to odd in f64 and divided in f64, and the quotient is rounded to the dtype. For
//                    f64 the exact sum is rounded to nearest and then divided.
//   Weights          A contribution is weights[p] * src[p][i], rounded to f64 on its own. The sum of these
//                    products is exact.
//   Zero             +0, or -0 if every contribution is -0.
//   NaN              Results from a NaN, from infinities of both signs, and from 0 / 0. Its bits do not
//                    depend on the payloads of the sources: 0x7E00 (f16), 0x7FC0 (bf16), 0x7FC00000 (f32),
//                    0x7FF8000000000000 (f64).
#pragma once

#include <cstddef>

#include "dist/types.h"

namespace dist {

// A destination may be identical to a source; any other overlap is forbidden.
struct ExactArguments {
  const std::byte* const* src;  // num_src pointers to `count` elements
  std::byte* const* dst;        // num_dst pointers
  std::size_t num_src;          // 1 .. 2^30
  std::size_t num_dst;          // 1 or more
  std::size_t count;            // elements
  const double* weights;        // one for each source; NULL: all are 1
  double divisor;               // 1: a SUM. MEAN: the number of contributions, or the sum of their weights
  bool stream;                  // use non-temporal stores, for results much larger than the caches
};

// Like every kernel, it must be called within an FpEnvironment.
using ExactKernel = void (*)(const ExactArguments&) noexcept;

// Returns NULL for all dtypes except f16, bf16, f32 and f64.
ExactKernel exact_kernel(dist_dtype dtype) noexcept;

// Returns the kernel of one of kernel_targets() by name; NULL if the CPU or the build does not have that
// target.
ExactKernel exact_kernel_of(const char* target, dist_dtype dtype) noexcept;

}  // namespace dist
