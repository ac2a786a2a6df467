// SPDX-License-Identifier: Apache-2.0
// The weighted mean, for each dtype:
//
//     for i in 0 .. count-1:
//       acc = w[0] * src[0][i];   for p in 1 .. num_src-1:  acc = acc + w[p] * src[p][i]
//       for d in 0 .. num_dst-1:  dst[d][i] = acc / (w[0] + w[1] + ...)
//
// The accumulator is f32 for f16, bf16, f32, complex64 and small integers, and f64 for f64 and for integers
// of 32 bits and more. Every product, every sum and the quotient is rounded to the accumulator's type; the
// result is rounded once more if its type is narrower. These are plain loops that the compiler vectorizes.
// The code fixes the order in which an element is folded.
#pragma once

#include <cstddef>

#include "dist/types.h"

namespace dist {

struct WeightedArguments {
  const std::byte* const* src;  // num_src pointers to `count` elements
  const double* weights;        // num_src
  std::byte* const* dst;        // num_dst pointers
  std::size_t num_src;
  std::size_t num_dst;
  std::size_t count;
};

// As with reduce_kernel(), a destination may be a source. check_op() must accept `dtype` for MEAN.
void weighted_mean(dist_dtype dtype, const WeightedArguments& args) noexcept;

// Like weighted_mean(), but both the products and the weights are added by the tree of tree.hpp.
void weighted_tree_mean(dist_dtype dtype, const WeightedArguments& args) noexcept;

// The steps of weighted means, used by partial.hpp.
struct PartialArguments;
struct FinishArguments;
void fold_weighted(dist_dtype dtype, const PartialArguments& args) noexcept;
void fold_weighted_subtree(dist_dtype dtype, const PartialArguments& args) noexcept;
void finish_weighted(dist_dtype dtype, const FinishArguments& args) noexcept;

}  // namespace dist
