// SPDX-License-Identifier: Apache-2.0
// Folds in several steps. reduce_kernel(), weighted_mean() and exact_kernel() fold all sources in one pass.
// Here the sources can be cut anywhere into partials, with the same result to the bit:
//
//     fold_partial() of the first sources              -> accumulator
//     fold_partial() of the next ones, continuing it   -> accumulator, any number of times
//     finish_partial()                                 -> destinations
//
// For a TREE fold (tree.hpp), each aligned block of sources has a subtotal instead, and neighbours are
// joined:
//
//     fold_subtree() of each block                     -> accumulators
//     join_subtrees() of blocks that are neighbours; at the end, the remaining ones from right to left
//     finish_partial()                                 -> destinations
//
// An accumulator holds the values that a single pass would have in registers at that point, so it can be sent
// to another process and continued there.
//
// Invariant: sources keep their order, and no sum is rounded early. Like all kernels, these functions must be
// called within an FpEnvironment.
#pragma once

#include <cstddef>

#include "core/kernel/superaccumulator.hpp"
#include "dist/types.h"

namespace dist {

// The dtype of an accumulator's elements, for sums that are not exact: f32 for f16 and bf16; with weights,
// the accumulator's type in weighted.hpp; otherwise the dtype itself.
dist_dtype accumulator_dtype(dist_dtype dtype, bool weighted) noexcept;

struct PartialArguments {
  const std::byte* const* src;  // num_src pointers to `count` elements of the dtype
  const double* weights;        // one for each source; NULL: not a weighted mean
  std::size_t num_src;          // 1 or more
  std::size_t count;            // elements
  std::byte* acc;               // `count` elements of accumulator_dtype(), aligned for it; overlaps no source
  bool continues;               // acc holds the fold of earlier sources; false: these sources are the first
};

// Folds the sources into the accumulator. check_op() must accept the pair, and the operator must not be the
// host's, which works in its own accumulator.
void fold_partial(dist_dtype dtype, dist_reduce_op op, const PartialArguments& args) noexcept;

// acc = T(0, num_src) of the sources; `continues` must be false. If depends_on_order() or with weights, the
// sources must be an aligned block, or the last ones of all.
void fold_subtree(dist_dtype dtype, dist_reduce_op op, const PartialArguments& args) noexcept;
// left = left op right, both accumulators.
void join_subtrees(dist_dtype dtype, dist_reduce_op op, bool weighted, std::byte* left,
                   const std::byte* right, std::size_t count) noexcept;

struct FinishArguments {
  const std::byte* acc;
  std::byte* const* dst;  // num_dst pointers; each may equal acc if the results are no larger
  std::size_t num_dst;    // 1 or more
  std::size_t count;      // elements
  double divisor;         // MEAN: the number of sources, or the fold_weights() of all weights
  bool weighted;
  bool stream;  // use non-temporal stores
};

void finish_partial(dist_dtype dtype, dist_reduce_op op, const FinishArguments& args) noexcept;

// The sum of weights as weighted_mean() adds them: in the accumulator's type, from left to right. `total` is
// the sum of earlier weights, or 0.
double fold_weights(dist_dtype dtype, double total, const double* weights, std::size_t n) noexcept;

// Like fold_weights(), but by the tree. Join subtotals with fold_weights(dtype, left, &right, 1).
double tree_weights(dist_dtype dtype, const double* weights, std::size_t n) noexcept;

// The accumulator of one element of an exact sum (exact.hpp). Partials may be added in any order.
class ExactPartial {
 public:
  void add(double term) noexcept;
  void add(const ExactPartial& other) noexcept;
  // Rounds like Superaccumulator::round(). The sum must not be used afterwards.
  double round(bool to_odd) noexcept;

 private:
  Superaccumulator sum_;
  double special_ = 0;  // the sum of the infinities and NaNs, in f64 arithmetic
  bool all_negative_zero_ = true;
};

// Adds the sources to exact sums of f16, bf16, f32 or f64. `acc` has one accumulator for each of `count`
// elements.
void fold_exact(dist_dtype dtype, const std::byte* const* src, const double* weights, std::size_t num_src,
                std::size_t count, ExactPartial* acc) noexcept;
// `divisor` is as in ExactArguments. The accumulators must not be used afterwards.
void finish_exact(dist_dtype dtype, ExactPartial* acc, double divisor, std::byte* const* dst,
                  std::size_t num_dst, std::size_t count) noexcept;

}  // namespace dist
