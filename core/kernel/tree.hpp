// SPDX-License-Identifier: Apache-2.0
// Kernels of TREE: a fold by a fixed binary tree over the contributions x[0] .. x[N-1], in their order.
//
//     T(a, 1) = x[a]
//     T(a, n) = T(a, m) op T(a + m, n - m)      m: the largest power of two below n
//     result  = finish(T(0, N))
//
//     N = 7:   ((0 1) (2 3))  ((4 5) 6)
//
// The first m contributions of T(a, n) are folded independently of n. So every aligned block of 2^k
// contributions, beginning at a multiple of 2^k, has a subtotal of its own. A range of n contributions that
// begins anywhere consists of at most 2 * ceil(log2 n) such blocks (one if n is 1), and folding it does not
// require knowing N. For up to three contributions, the tree equals the fold from left to right.
//
// A subtotal has the accumulator's type, like every other value inside the tree (partial.hpp).
#pragma once

#include <bit>
#include <cstddef>

#include "core/kernel/reduce.hpp"
#include "dist/types.h"

namespace dist {

// The maximum number of sources of a TREE fold, and how many subtotals it needs at the same time.
inline constexpr std::size_t kMostTreeSources = (std::size_t{1} << 21) - 1;
inline constexpr std::size_t kTreeSlots = 20;

// Whether the order of a fold can change its bits. It can for floating-point numbers, except with MIN and
// MAX.
bool depends_on_order(dist_dtype dtype, dist_reduce_op op) noexcept;

// Returns the kernel for a pair that check_op() accepts and for `num_src` sources. If the order does not
// matter, this is reduce_kernel(). f16 and bf16 accumulate in f32 and are rounded once.
ReduceKernel tree_kernel(dist_dtype dtype, dist_reduce_op op, std::size_t num_src) noexcept;

// Returns the kernel of one of kernel_targets() by name; NULL if the CPU or the build does not have that
// target, or if depends_on_order() is false.
ReduceKernel tree_kernel_of(const char* target, dist_dtype dtype, dist_reduce_op op) noexcept;

// Number of subtotals that walk_tree() uses at the same time.
constexpr std::size_t tree_slots(std::size_t n) noexcept {
  return n < 4 ? 1 : static_cast<std::size_t>(std::bit_width(n)) - 1;
}

// Computes T(0, n) in slots. The result is in the first slot.
//
//     begin(s, p)   slot[s] = x[p]
//     add(s, p)     slot[s] = slot[s] op x[p]
//     join(s)       slot[s] = slot[s] op slot[s + 1]
template <class Begin, class Add, class Join>
void walk_tree(std::size_t n, Begin&& begin, Add&& add, Join&& join) {
  std::size_t used = 0;
  for (std::size_t p = 0; p < n; ++p) {
    if (p % 2 == 0) {
      // The last contribution of an odd number needs no slot of its own.
      if (p + 1 == n && used != 0) {
        add(used - 1, p);
      } else {
        begin(used++, p);
      }
      continue;
    }
    add(used - 1, p);
    for (std::size_t pairs = p / 2; pairs % 2 != 0; pairs /= 2) join(--used - 1);
  }
  while (used > 1) join(--used - 1);
}

// An aligned block of contributions.
struct TreeBlock {
  std::size_t first;
  std::size_t size;  // a power of two; `first` is a multiple of it

  // Whether this block and `next`, which follows it, form one block.
  constexpr bool joins(const TreeBlock& next) const noexcept {
    return size == next.size && first % (2 * size) == 0;
  }
};

// The first of the blocks that make up n contributions from `first` on. The next block begins where it ends.
constexpr TreeBlock first_tree_block(std::size_t first, std::size_t n) noexcept {
  const std::size_t largest = std::bit_floor(n);
  const std::size_t aligned = first == 0 ? largest : first & (~first + 1);
  return {first, aligned < largest ? aligned : largest};
}

}  // namespace dist
