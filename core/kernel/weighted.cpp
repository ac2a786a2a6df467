// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/weighted.hpp"

#include <algorithm>
#include <cstring>

#include "core/kernel/partial.hpp"
#include "core/kernel/stored.hpp"

namespace dist {
namespace {

constexpr std::size_t kBlock = 128;  // numbers; three arrays of it are on the stack

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

template <class Element>
void divide(const typename Element::Acc* acc, typename Element::Acc total, std::byte* const* dst,
            std::size_t num_dst, std::size_t at, std::size_t n) noexcept {
  using Result = typename Element::Result;
  Result result[kBlock];
  for (std::size_t i = 0; i < n; ++i) result[i] = Element::write(acc[i] / total);
  for (std::size_t d = 0; d < num_dst; ++d)
    std::memcpy(dst[d] + at * sizeof(Result), result, n * sizeof(Result));
}

// Calls block(at, n) for blocks of the numbers that `count` elements have.
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
