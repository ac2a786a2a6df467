// SPDX-License-Identifier: Apache-2.0
// Exchange::Job: the buffers that a piece of an exchange reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/collective/exchange.hpp"

namespace dist {

// A region of a task, and its buffers.
struct Exchange::Job : Place {
  Job(const Place& place, dist_dtype in, dist_dtype out) noexcept
      : Place(place), in_dtype(in), out_dtype(out) {}

  dist_dtype in_dtype;
  dist_dtype out_dtype;
  // These arrays are in a thread's Scratch.
  std::size_t num_src = 0;
  std::size_t num_dst = 0;
  const std::byte** src = nullptr;
  std::byte** dst = nullptr;
  const double* weights = nullptr;  // one for each source; NULL: none
  // The region's shape; set only if some tensor is strided.
  int32_t ndim = 0;
  int64_t shape[DIST_MAX_NDIM];

  void add_source(const void* data) noexcept { src[num_src++] = static_cast<const std::byte*>(data); }
  void add_destination(void* data) noexcept { dst[num_dst++] = static_cast<std::byte*>(data); }
  // The row-major index in the tensor of element `at` in row `row` of the region.
  std::size_t src_at(std::size_t row, std::size_t at) const noexcept {
    return region.src_first + row * region.src_step + at;
  }
  std::size_t dst_at(std::size_t row, std::size_t at) const noexcept {
    return region.dst_first + row * region.dst_step + at;
  }
};

}  // namespace dist
