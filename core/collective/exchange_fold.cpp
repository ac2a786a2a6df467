// SPDX-License-Identifier: Apache-2.0
// How an exchange folds contiguous elements in the order that the call's numerics prescribe.
#include <algorithm>
#include <cstring>

#include "core/collective/exchange.hpp"
#include "core/kernel/exact.hpp"
#include "core/kernel/superaccumulator.hpp"
#include "core/kernel/tree.hpp"
#include "core/kernel/weighted.hpp"

namespace dist {

void Exchange::reduce(std::size_t t, std::size_t first, std::size_t count, std::byte* to,
                      Scratch& scratch) const noexcept {
  const std::size_t mark = scratch.mark();
  auto** const src = scratch.take<const std::byte*>(sources_);
  std::size_t num_src = 0;
  const std::size_t from = first * dtype_size(tasks_.dtype_of(t));
  for (int p = 0; p < size_; ++p) {
    for (std::size_t j = 0; j < descriptors_[p]->contributions; ++j) {
      src[num_src++] = static_cast<const std::byte*>(descriptors_[p]->in[j * call_.n + t].data) + from;
    }
  }
  fold({tasks_.dtype_of(t), src, num_src, collect_weights(scratch), &to, 1, count});
  scratch.give_back(mark);
}

void Exchange::fold(const Fold& f) const noexcept {
  if (call_.op == DIST_REDUCE_USER) {
    return call_.numerics == DIST_NUMERICS_TREE && f.num_src > 3 ? fold_tree_by_user(f) : fold_by_user(f);
  }
  if (call_.numerics == DIST_NUMERICS_REPRODUCIBLE && dtype_is_floating(f.dtype) &&
      (call_.op == DIST_REDUCE_SUM || call_.op == DIST_REDUCE_MEAN)) {
    return fold_exactly(f);
  }
  const bool tree = call_.numerics == DIST_NUMERICS_TREE;
  if (f.weights != nullptr) {
    const WeightedArguments args{f.src, f.weights, f.dst, f.num_src, f.num_dst, f.count};
    return tree ? weighted_tree_mean(f.dtype, args) : weighted_mean(f.dtype, args);
  }
  const ReduceKernel kernel =
      tree ? tree_kernel(f.dtype, call_.op, f.num_src) : reduce_kernel(f.dtype, call_.op);
  kernel({f.src, f.dst, f.num_src, f.num_dst, f.count, static_cast<double>(f.num_src), stream_});
}

// One weight for each source, in source order; NULL if the call has no weights.
const double* Exchange::collect_weights(Scratch& scratch) const noexcept {
  if (!weighted_) return nullptr;
  auto* const weights = scratch.take<double>(sources_);
  double* next = weights;
  for (int p = 0; p < size_; ++p) {
    for (std::size_t j = 0; j < descriptors_[p]->contributions; ++j) {
      *next++ = descriptors_[p]->weights != nullptr ? descriptors_[p]->weights[j] : 1;
    }
  }
  return weights;
}

void Exchange::fold_exactly(const Fold& f) const noexcept {
  double divisor = call_.op == DIST_REDUCE_MEAN ? static_cast<double>(f.num_src) : 1;
  if (f.weights != nullptr) {
    // The weights are summed exactly too, so that their sum does not depend on which member brings which
    // weight.
    Superaccumulator sum;
    std::for_each(f.weights, f.weights + f.num_src, [&](double weight) { sum.add(weight); });
    divisor = sum.round(false);
  }
  exact_kernel(f.dtype)({f.src, f.dst, f.num_src, f.num_dst, f.count, f.weights, divisor, stream_});
}

// The host's operator works in place, so it gets a copy: a destination may be a source that is read later.
void Exchange::fold_by_user(const Fold& f) const noexcept {
  alignas(64) std::byte acc[kMostElementBytes];
  const std::size_t size = call_.element_bytes != 0 ? call_.element_bytes : dtype_size(f.dtype);
  const std::size_t all = f.count * dtype_size(f.dtype) / size;
  const std::size_t most = sizeof acc / size;
  for (std::size_t at = 0; at < all; at += most) {
    const std::size_t n = std::min(most, all - at);
    std::memcpy(acc, f.src[0] + at * size, n * size);
    for (std::size_t s = 1; s < f.num_src; ++s) call_.fold_in(acc, f.src[s] + at * size, n, f.dtype);
    for (std::size_t d = 0; d < f.num_dst; ++d) std::memcpy(f.dst[d] + at * size, acc, n * size);
  }
}

// Like fold_by_user(), for TREE, with a slot for each subtotal. fit.cpp ensures that a slot has room for an
// element.
void Exchange::fold_tree_by_user(const Fold& f) const noexcept {
  alignas(64) std::byte room[kTreeRoom];
  const std::size_t slot_bytes = most_tree_element(f.num_src);
  const std::size_t size = call_.element_bytes != 0 ? call_.element_bytes : dtype_size(f.dtype);
  const std::size_t all = f.count * dtype_size(f.dtype) / size;
  const std::size_t most = slot_bytes / size;
  for (std::size_t at = 0; at < all; at += most) {
    const std::size_t n = std::min(most, all - at);
    const auto slot = [&](std::size_t s) { return room + s * slot_bytes; };
    const auto fold_in = [&](std::size_t s, const std::byte* in) { call_.fold_in(slot(s), in, n, f.dtype); };
    walk_tree(
        f.num_src,
        [&](std::size_t s, std::size_t p) { std::memcpy(slot(s), f.src[p] + at * size, n * size); },
        [&](std::size_t s, std::size_t p) { fold_in(s, f.src[p] + at * size); },
        [&](std::size_t s) { fold_in(s, slot(s + 1)); });
    for (std::size_t d = 0; d < f.num_dst; ++d) std::memcpy(f.dst[d] + at * size, slot(0), n * size);
  }
}

}  // namespace dist
