// SPDX-License-Identifier: Apache-2.0
// How an exchange computes the prefixes of a scan.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/collective/exchange_job.hpp"
#include "core/kernel/identity.hpp"
#include "core/kernel/partial.hpp"

namespace dist {

// Number of outputs that are not written: a host operator has no identity for the first result of an
// exclusive scan.
std::size_t Exchange::unwritten(const Job& job) const noexcept {
  const bool exclusive = call_.traits().prefixes && call_.kind == DIST_SCAN_EXCLUSIVE;
  return exclusive && call_.op == DIST_REDUCE_USER && job.destinations.begin == 0 ? 1 : 0;
}

// Whether each prefix is computed from the previous one. If there are only a few, computing them
// independently is faster. With TREE it is necessary, because a fold of one more input is a different tree.
bool Exchange::scans_on() const noexcept {
  constexpr int kFew = 3;
  if (size_ <= kFew || call_.numerics == DIST_NUMERICS_TREE) return false;
  // With an operator of the host, the accumulator takes much of the stack. There is no room for a copy of the
  // input that the output overwrites.
  return call_.op != DIST_REDUCE_USER || call_.kind == DIST_SCAN_INCLUSIVE || !call_.in_place;
}

void Exchange::run_scan(const Job& job, std::size_t count) const noexcept {
  if (scans_on()) return call_.op == DIST_REDUCE_USER ? scan_on_by_user(job, count) : scan_on(job, count);
  const std::size_t own = call_.kind == DIST_SCAN_INCLUSIVE ? 1 : 0;
  const auto before = static_cast<std::size_t>(job.destinations.begin) + own;
  // Goes from the last member to the first, so that a scan in place overwrites no input that is still to be
  // read.
  for (std::size_t d = job.num_dst; d-- > 0;) {
    if (before + d != 0) {
      fold({job.in_dtype, job.src, before + d, nullptr, job.dst + d, 1, count});
    } else if (unwritten(job) == 0) {
      fill_identity(job.in_dtype, call_.op, job.dst[d], count);
    }
  }
}

// Works in pieces that stay in the cache. In place, an input is folded before its output is written; in an
// exclusive scan it is folded into a copy.
void Exchange::scan_on(const Job& job, std::size_t count) const noexcept {
  constexpr std::size_t kBytes = 2048;
  alignas(64) std::byte room[2][kBytes];
  std::byte* acc = room[0];
  std::byte* next = call_.kind == DIST_SCAN_INCLUSIVE ? acc : room[1];
  const std::size_t acc_bytes = dtype_size(accumulator_dtype(job.in_dtype, false));
  const auto first = static_cast<std::size_t>(job.destinations.begin);
  for (std::size_t at = 0; at < count;) {
    const std::size_t n = std::min(count - at, kBytes / acc_bytes);
    const std::byte* src = nullptr;
    const auto fold_in = [&](std::size_t s, std::byte* to) {
      src = job.src[s] + at * dtype_size(job.in_dtype);
      if (to != acc && s != 0) std::memcpy(to, acc, n * acc_bytes);
      fold_partial(job.in_dtype, call_.op, {&src, nullptr, 1, n, to, s != 0});
    };
    for (std::size_t s = 0; s < first; ++s) fold_in(s, acc);
    for (std::size_t d = 0; d < job.num_dst; ++d) {
      std::byte* const dst = job.dst[d] + at * dtype_size(job.out_dtype);
      fold_in(first + d, next);
      if (next != acc && first + d == 0) {
        fill_identity(job.in_dtype, call_.op, dst, n);
      } else {
        finish_partial(job.in_dtype, call_.op, {acc, &dst, 1, n, 1, false, false});
      }
      std::swap(acc, next);
    }
    at += n;
  }
}

void Exchange::scan_on_by_user(const Job& job, std::size_t count) const noexcept {
  alignas(64) std::byte acc[kMostElementBytes];
  const std::size_t size = call_.element_bytes != 0 ? call_.element_bytes : dtype_size(job.in_dtype);
  const std::size_t all = count * dtype_size(job.in_dtype) / size;
  const auto first = static_cast<std::size_t>(job.destinations.begin);
  for (std::size_t at = 0; at < all;) {
    const std::size_t n = std::min(all - at, sizeof acc / size);
    const auto fold_in = [&](std::size_t s) {
      const std::byte* const src = job.src[s] + at * size;
      if (s == 0) return static_cast<void>(std::memcpy(acc, src, n * size));
      call_.fold_in(acc, src, n, job.in_dtype);
    };
    for (std::size_t s = 0; s < first; ++s) fold_in(s);
    for (std::size_t d = 0; d < job.num_dst; ++d) {
      if (call_.kind == DIST_SCAN_INCLUSIVE) fold_in(first + d);
      if (d >= unwritten(job)) std::memcpy(job.dst[d] + at * size, acc, n * size);
      if (call_.kind != DIST_SCAN_INCLUSIVE) fold_in(first + d);
    }
    at += n;
  }
}

}  // namespace dist
