// SPDX-License-Identifier: Apache-2.0
// Reduction kernels for each dtype and operator, using the SIMD instructions of the running CPU (Google
// Highway).
//
//     for i in 0 .. count-1:
//       acc = src[0][i];   for p in 1 .. num_src-1:  acc = op(acc, src[p][i])      (left to right)
//       for d in 0 .. num_dst-1:  dst[d][i] = finish(acc)
//
// A destination may be identical to a source; any other overlap is forbidden. The caller must be inside an
// FpEnvironment.
//
// Invariant: a kernel is a pure function of its sources, with the same bits on every CPU. It knows no thread
// and no group, and it accesses no memory except its elements.
#pragma once

#include <cstddef>

#include "dist/types.h"

namespace dist {

struct ReduceArguments {
  const std::byte* const* src;  // num_src pointers to `count` elements
  std::byte* const* dst;        // num_dst pointers
  std::size_t num_src;          // 1 or more
  std::size_t num_dst;          // 1 or more
  std::size_t count;            // elements
  double divisor;               // MEAN: the divisor of the folded sum, in the accumulator's type
  bool stream;                  // use non-temporal stores, for results much larger than the caches
};

using ReduceKernel = void (*)(const ReduceArguments&) noexcept;

// Returns the kernel of a pair that check_op() accepts. MEAN of integers writes dtype_of_mean(dtype). f16 and
// bf16 accumulate in f32 and round once. Integers wrap. MIN and MAX return NaN if any source is NaN, and
// order -0 before +0. bool reads nonzero as true and writes 0 or 1.
ReduceKernel reduce_kernel(dist_dtype dtype, dist_reduce_op op) noexcept;

// Returns the kernel of one of kernel_targets() (targets.hpp) by name, for tests and benchmarks; NULL if the
// CPU or the build does not have that target. "SCALAR" is the reference in plain C++ without SIMD.
ReduceKernel reduce_kernel_of(const char* target, dist_dtype dtype, dist_reduce_op op) noexcept;

}  // namespace dist
