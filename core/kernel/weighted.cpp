// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/weighted.hpp"

#include <algorithm>
#include <cstring>

#include "core/kernel/partial.hpp"
#include "core/kernel/stored.hpp"
#include "core/kernel/tree.hpp"

namespace dist {
namespace {

constexpr std::size_t kBlock = 128;           // numbers; three such arrays are on the stack
constexpr std::size_t kTreeBlockBytes = 256;  // size of a slot of a tree

template <class Acc>
Acc total_of(Acc total, const double* weights, std::size_t n) noexcept {
  for (std::size_t p = 0; p < n; ++p) total += static_cast<Acc>(weights[p]);
  return total;
}

// acc = acc + w[p] * src[p] for n numbers from `at` on, source by source. Without `continues`, the first
// product is stored in acc instead of added.
template <class Element>
void accumulate(const std::byte* const* src, const double* weights, std::size_t num_src, std::size_t at,
                std::size_t n, typename Element::Acc* acc, bool continues) noexcept {
  using Stored = typename Element::Stored;
  using Acc = typename Element::Acc;
  Stored stored[kBlock];
  for (std::size_t p = 0; p < num_src; ++p) {
    const Acc weight = static_cast<Acc>(weights[p]);
    // Buffers need no alignment.
    std::memcpy(stored, src[p] + at * sizeof(Stored), n * sizeof(Stored));
    if (p == 0 && !continues) {
      for (std::size_t i = 0; i < n; ++i) acc[i] = weight * Element::read(stored[i]);
    } else {
      for (std::size_t i = 0; i < n; ++i) acc[i] += weight * Element::read(stored[i]);
    }
  }
}

// Computes T(0, num_src) of w[p] * src[p] in acc. The slots of the tree are on the stack.
template <class Element>
void accumulate_as_tree(const std::byte* const* src, const double* weights, std::size_t num_src,
                        std::size_t at, std::size_t n, typename Element::Acc* acc) noexcept {
  using Acc = typename Element::Acc;
  constexpr std::size_t kEach = kTreeBlockBytes / sizeof(Acc);
  Acc slots[kTreeSlots][kEach];
  for (std::size_t done = 0; done < n; done += kEach) {
    const std::size_t some = std::min(kEach, n - done);
    const auto product = [&](std::size_t slot, std::size_t p, bool continues) {
      accumulate<Element>(src + p, weights + p, 1, at + done, some, slots[slot], continues);
    };
    walk_tree(
        num_src, [&](std::size_t slot, std::size_t p) { product(slot, p, false); },
        [&](std::size_t slot, std::size_t p) { product(slot, p, true); },
        [&](std::size_t slot) {
          for (std::size_t i = 0; i < some; ++i) slots[slot][i] += slots[slot + 1][i];
        });
    std::copy_n(slots[0], some, acc + done);
  }
}

template <class Acc>
Acc total_as_tree(const double* weights, std::size_t n) noexcept {
  Acc slots[kTreeSlots];
  walk_tree(
      n, [&](std::size_t slot, std::size_t p) { slots[slot] = static_cast<Acc>(weights[p]); },
      [&](std::size_t slot, std::size_t p) { slots[slot] += static_cast<Acc>(weights[p]); },
      [&](std::size_t slot) { slots[slot] += slots[slot + 1]; });
  return slots[0];
}

template <class Element>
void divide(const typename Element::Acc* acc, typename Element::Acc total, std::byte* const* dst,
            std::size_t num_dst, std::size_t at, std::size_t n) noexcept {
  using Result = typename Element::Result;
  Result result[kBlock];
  for (std::size_t i = 0; i < n; ++i) result[i] = Element::write(acc[i] / total);
  for (std::size_t d = 0; d < num_dst; ++d)
    std::memcpy(dst[d] + at * sizeof(Result), result, n * sizeof(Result));
}

// Calls block(at, n) for blocks of the numbers in `count` elements.
template <class Element, class Block>
void for_blocks(std::size_t count, Block&& block) noexcept {
  const std::size_t lanes = count * Element::kLanes;
  for (std::size_t at = 0; at < lanes; at += kBlock) block(at, std::min(kBlock, lanes - at));
}

}  // namespace

void weighted_mean(dist_dtype dtype, const WeightedArguments& args) noexcept {
  stored::with_weighted_element(dtype, [&]<class Element>() {
    using Acc = typename Element::Acc;
    const Acc total = total_of(static_cast<Acc>(args.weights[0]), args.weights + 1, args.num_src - 1);
    for_blocks<Element>(args.count, [&](std::size_t at, std::size_t n) {
      Acc acc[kBlock];
      accumulate<Element>(args.src, args.weights, args.num_src, at, n, acc, false);
      divide<Element>(acc, total, args.dst, args.num_dst, at, n);
    });
  });
}

void weighted_tree_mean(dist_dtype dtype, const WeightedArguments& args) noexcept {
  stored::with_weighted_element(dtype, [&]<class Element>() {
    using Acc = typename Element::Acc;
    const Acc total = total_as_tree<Acc>(args.weights, args.num_src);
    for_blocks<Element>(args.count, [&](std::size_t at, std::size_t n) {
      Acc acc[kBlock];
      accumulate_as_tree<Element>(args.src, args.weights, args.num_src, at, n, acc);
      divide<Element>(acc, total, args.dst, args.num_dst, at, n);
    });
  });
}

void fold_weighted_subtree(dist_dtype dtype, const PartialArguments& args) noexcept {
  stored::with_weighted_element(dtype, [&]<class Element>() {
    auto* const acc = reinterpret_cast<typename Element::Acc*>(args.acc);
    for_blocks<Element>(args.count, [&](std::size_t at, std::size_t n) {
      accumulate_as_tree<Element>(args.src, args.weights, args.num_src, at, n, acc + at);
    });
  });
}

double tree_weights(dist_dtype dtype, const double* weights, std::size_t n) noexcept {
  return stored::with_weighted_element(dtype, [&]<class Element>() {
    return static_cast<double>(total_as_tree<typename Element::Acc>(weights, n));
  });
}

void fold_weighted(dist_dtype dtype, const PartialArguments& args) noexcept {
  stored::with_weighted_element(dtype, [&]<class Element>() {
    auto* const acc = reinterpret_cast<typename Element::Acc*>(args.acc);
    for_blocks<Element>(args.count, [&](std::size_t at, std::size_t n) {
      accumulate<Element>(args.src, args.weights, args.num_src, at, n, acc + at, args.continues);
    });
  });
}

void finish_weighted(dist_dtype dtype, const FinishArguments& args) noexcept {
  stored::with_weighted_element(dtype, [&]<class Element>() {
    using Acc = typename Element::Acc;
    const auto* const acc = reinterpret_cast<const Acc*>(args.acc);
    for_blocks<Element>(args.count, [&](std::size_t at, std::size_t n) {
      divide<Element>(acc + at, static_cast<Acc>(args.divisor), args.dst, args.num_dst, at, n);
    });
  });
}

double fold_weights(dist_dtype dtype, double total, const double* weights, std::size_t n) noexcept {
  return stored::with_weighted_element(dtype, [&]<class Element>() {
    return static_cast<double>(total_of(static_cast<typename Element::Acc>(total), weights, n));
  });
}

}  // namespace dist
