// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/partial.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/tensor.hpp"
#include "core/kernel/reduce.hpp"
#include "core/kernel/stored.hpp"
#include "core/kernel/tree.hpp"
#include "core/kernel/weighted.hpp"

namespace dist {
namespace {

constexpr std::size_t kMostSources = 64;     // of one kernel call, including the accumulator
constexpr std::size_t kBlockElements = 512;  // converted at a time

bool is_narrow(dist_dtype dtype) noexcept { return dtype == DIST_F16 || dtype == DIST_BF16; }

// Until it is finished, a mean is folded like a sum.
dist_reduce_op op_of_fold(dist_reduce_op op) noexcept {
  return op == DIST_REDUCE_MEAN ? DIST_REDUCE_SUM : op;
}

void fold_as_stored(dist_dtype dtype, dist_reduce_op op, const PartialArguments& args) noexcept {
  const ReduceKernel kernel = reduce_kernel(dtype, op_of_fold(op));
  const std::byte* src[kMostSources] = {args.acc};
  bool continues = args.continues;
  for (std::size_t p = 0; p < args.num_src;) {
    std::size_t n = continues ? 1 : 0;
    while (n < kMostSources && p < args.num_src) src[n++] = args.src[p++];
    kernel({src, &args.acc, n, 1, args.count, 1, false});
    src[0] = args.acc;
    continues = true;
  }
}

template <class Element>
void fold_widened(dist_reduce_op op, const PartialArguments& args) noexcept {
  using Stored = typename Element::Stored;
  const ReduceKernel kernel = reduce_kernel(DIST_F32, op_of_fold(op));
  for (std::size_t at = 0; at < args.count; at += kBlockElements) {
    const std::size_t n = std::min(kBlockElements, args.count - at);
    std::byte* const acc = args.acc + at * sizeof(float);
    for (std::size_t p = 0; p < args.num_src; ++p) {
      Stored stored[kBlockElements];
      float wide[kBlockElements];
      std::memcpy(stored, args.src[p] + at * sizeof(Stored), n * sizeof(Stored));
      for (std::size_t i = 0; i < n; ++i) wide[i] = Element::read(stored[i]);
      const auto* const from = reinterpret_cast<const std::byte*>(wide);
      if (p == 0 && !args.continues) {
        std::memcpy(acc, from, n * sizeof(float));
        continue;
      }
      const std::byte* const src[] = {acc, from};
      kernel({src, &acc, 2, 1, n, 1, false});
    }
  }
}

template <class Element>
void fold_widened_subtree(dist_reduce_op op, const PartialArguments& args) noexcept {
  using Stored = typename Element::Stored;
  constexpr std::size_t kEach = 64;
  const ReduceKernel kernel = reduce_kernel(DIST_F32, op_of_fold(op));
  float slots[kTreeSlots][kEach];
  float wide[kEach];
  for (std::size_t at = 0; at < args.count; at += kEach) {
    const std::size_t n = std::min(kEach, args.count - at);
    const auto widen = [&](std::size_t p, float* to) {
      Stored stored[kEach];
      std::memcpy(stored, args.src[p] + at * sizeof(Stored), n * sizeof(Stored));
      for (std::size_t i = 0; i < n; ++i) to[i] = Element::read(stored[i]);
    };
    const auto fold = [&](float* left, const float* right) {
      auto* const to = reinterpret_cast<std::byte*>(left);
      const std::byte* const src[] = {to, reinterpret_cast<const std::byte*>(right)};
      kernel({src, &to, 2, 1, n, 1, false});
    };
    walk_tree(
        args.num_src, [&](std::size_t slot, std::size_t p) { widen(p, slots[slot]); },
        [&](std::size_t slot, std::size_t p) {
          widen(p, wide);
          fold(slots[slot], wide);
        },
        [&](std::size_t slot) { fold(slots[slot], slots[slot + 1]); });
    std::memcpy(args.acc + at * sizeof(float), slots[0], n * sizeof(float));
  }
}

template <class Element>
void narrow(const FinishArguments& args, bool divides) noexcept {
  using Result = typename Element::Result;
  const auto divisor = static_cast<float>(args.divisor);
  for (std::size_t at = 0; at < args.count; at += kBlockElements) {
    const std::size_t n = std::min(kBlockElements, args.count - at);
    float wide[kBlockElements];
    Result result[kBlockElements];
    std::memcpy(wide, args.acc + at * sizeof(float), n * sizeof(float));
    for (std::size_t i = 0; i < n; ++i) result[i] = Element::write(divides ? wide[i] / divisor : wide[i]);
    for (std::size_t d = 0; d < args.num_dst; ++d)
      std::memcpy(args.dst[d] + at * sizeof(Result), result, n * sizeof(Result));
  }
}

}  // namespace

dist_dtype accumulator_dtype(dist_dtype dtype, bool weighted) noexcept {
  if (is_narrow(dtype)) return DIST_F32;
  if (!weighted || dtype_is_floating(dtype) || dtype == DIST_COMPLEX64) return dtype;
  return dtype_size(dtype) >= 4 ? DIST_F64 : DIST_F32;
}

void fold_partial(dist_dtype dtype, dist_reduce_op op, const PartialArguments& args) noexcept {
  if (args.weights != nullptr) return fold_weighted(dtype, args);
  if (dtype == DIST_F16) return fold_widened<stored::Half>(op, args);
  if (dtype == DIST_BF16) return fold_widened<stored::BrainFloat>(op, args);
  fold_as_stored(dtype, op, args);
}

void fold_subtree(dist_dtype dtype, dist_reduce_op op, const PartialArguments& args) noexcept {
  if (args.weights != nullptr) return fold_weighted_subtree(dtype, args);
  if (!depends_on_order(dtype, op)) return fold_partial(dtype, op, args);
  if (dtype == DIST_F16) return fold_widened_subtree<stored::Half>(op, args);
  if (dtype == DIST_BF16) return fold_widened_subtree<stored::BrainFloat>(op, args);
  tree_kernel(dtype, op_of_fold(op),
              args.num_src)({args.src, &args.acc, args.num_src, 1, args.count, 1, false});
}

void join_subtrees(dist_dtype dtype, dist_reduce_op op, bool weighted, std::byte* left,
                   const std::byte* right, std::size_t count) noexcept {
  const std::byte* const src[] = {left, right};
  reduce_kernel(accumulator_dtype(dtype, weighted), op_of_fold(op))({src, &left, 2, 1, count, 1, false});
}

void finish_partial(dist_dtype dtype, dist_reduce_op op, const FinishArguments& args) noexcept {
  if (args.weighted) return finish_weighted(dtype, args);
  if (dtype == DIST_F16) return narrow<stored::Half>(args, op == DIST_REDUCE_MEAN);
  if (dtype == DIST_BF16) return narrow<stored::BrainFloat>(args, op == DIST_REDUCE_MEAN);
  reduce_kernel(dtype, op)({&args.acc, args.dst, 1, args.num_dst, args.count, args.divisor, args.stream});
}

}  // namespace dist
