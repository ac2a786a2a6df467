// SPDX-License-Identifier: Apache-2.0
// What an exchange does to elements that lie side by side: from left to right, into one.
#include <algorithm>
#include <cstring>

#include "core/cross_device/exchange.hpp"
#include "core/kernel/exact.hpp"
#include "core/kernel/weighted.hpp"

namespace dist {

void Exchange::reduce(std::size_t t, std::size_t first, std::size_t count, std::byte* to) const noexcept {
  const std::byte* src[DIST_MAX_CONTRIBUTIONS];
  std::size_t num_src = 0;
  const std::size_t from = first * dtype_size(dtype_of(t));
  for (int p = 0; p < size_; ++p) {
    for (std::size_t j = 0; j < offers_[p]->contributions; ++j) {
      src[num_src++] = static_cast<const std::byte*>(offers_[p]->in[j * call_.n + t].data) + from;
    }
  }
  fold(dtype_of(t), src, num_src, &to, 1, count);
}

void Exchange::fold(dist_dtype dtype, const std::byte* const* src, std::size_t num_src, std::byte* const* dst,
                    std::size_t num_dst, std::size_t count) const noexcept {
  if (call_.op == DIST_REDUCE_USER) return fold_by_user(dtype, src, num_src, dst, num_dst, count);
  if (call_.numerics == DIST_NUMERICS_REPRODUCIBLE && dtype_is_floating(dtype) &&
      (call_.op == DIST_REDUCE_SUM || call_.op == DIST_REDUCE_MEAN)) {
    return fold_exactly(dtype, src, num_src, dst, num_dst, count);
  }
  if (weighted_) {
    double weights[DIST_MAX_CONTRIBUTIONS];
    collect_weights(weights);
    return weighted_mean(dtype, {src, weights, dst, num_src, num_dst, count});
  }
  reduce_kernel(dtype, call_.op)({src, dst, num_src, num_dst, count, static_cast<double>(num_src), stream_});
}

// One weight for each source, in their order.
void Exchange::collect_weights(double* weights) const noexcept {
  for (int p = 0; p < size_; ++p) {
    for (std::size_t j = 0; j < offers_[p]->contributions; ++j) {
      *weights++ = offers_[p]->weights != nullptr ? offers_[p]->weights[j] : 1;
    }
  }
}

void Exchange::fold_exactly(dist_dtype dtype, const std::byte* const* src, std::size_t num_src,
                            std::byte* const* dst, std::size_t num_dst, std::size_t count) const noexcept {
  if (!weighted_) {
    const double divisor = call_.op == DIST_REDUCE_MEAN ? static_cast<double>(num_src) : 1;
    return exact_kernel(dtype)({src, dst, num_src, num_dst, count, nullptr, divisor, stream_});
  }
  // The weights are added exactly too: their sum must not depend on who brings which.
  double weights[DIST_MAX_CONTRIBUTIONS];
  const std::byte* each[DIST_MAX_CONTRIBUTIONS];
  collect_weights(weights);
  for (std::size_t s = 0; s < num_src; ++s) each[s] = reinterpret_cast<const std::byte*>(&weights[s]);
  double total;
  auto* sum = reinterpret_cast<std::byte*>(&total);
  exact_kernel(DIST_F64)({each, &sum, num_src, 1, 1, nullptr, 1, false});
  exact_kernel(dtype)({src, dst, num_src, num_dst, count, weights, total, stream_});
}

// The host's operator works in place: on a copy, since a destination may be a source that is still to be
// read.
void Exchange::fold_by_user(dist_dtype dtype, const std::byte* const* src, std::size_t num_src,
                            std::byte* const* dst, std::size_t num_dst, std::size_t count) const noexcept {
  alignas(64) std::byte acc[kMostElementBytes];
  const std::size_t size = call_.element_bytes != 0 ? call_.element_bytes : dtype_size(dtype);
  const std::size_t all = count * dtype_size(dtype) / size;
  const std::size_t most = sizeof acc / size;
  for (std::size_t at = 0; at < all; at += most) {
    const std::size_t n = std::min(most, all - at);
    std::memcpy(acc, src[0] + at * size, n * size);
    for (std::size_t s = 1; s < num_src; ++s)
      call_.user_op(acc, src[s] + at * size, n, dtype, call_.user_data);
    for (std::size_t d = 0; d < num_dst; ++d) std::memcpy(dst[d] + at * size, acc, n * size);
  }
}

}  // namespace dist
