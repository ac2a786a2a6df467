// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/in_place.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/base/tensor.hpp"
#include "core/kernel/divide.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/reduce.hpp"

namespace dist {
namespace {

constexpr std::size_t kBlockBytes = 4096;

template <class Lane>
void flip(std::byte* data, std::size_t bytes, Lane sign) noexcept {
  for (std::size_t at = 0; at < bytes; at += sizeof(Lane)) {
    Lane lane;
    std::memcpy(&lane, data + at, sizeof lane);
    lane = static_cast<Lane>(lane ^ sign);
    std::memcpy(data + at, &lane, sizeof lane);
  }
}

template <class Lane>
void complement(std::byte* data, std::size_t bytes) noexcept {
  for (std::size_t at = 0; at < bytes; at += sizeof(Lane)) {
    Lane lane;
    std::memcpy(&lane, data + at, sizeof lane);
    lane = static_cast<Lane>(Lane{0} - lane);
    std::memcpy(data + at, &lane, sizeof lane);
  }
}

// a - b and a + (-b) have the same bits, so the kernels need no subtraction.
void negate(dist_dtype dtype, std::byte* data, std::size_t bytes) noexcept {
  if (dtype == DIST_COMPLEX64) return flip<uint32_t>(data, bytes, 0x80000000u);  // two f32 each
  if (dtype_is_floating(dtype)) {
    switch (dtype_size(dtype)) {
      case 2: return flip<uint16_t>(data, bytes, 0x8000u);
      case 4: return flip<uint32_t>(data, bytes, 0x80000000u);
      default: return flip<uint64_t>(data, bytes, uint64_t{1} << 63);
    }
  }
  switch (dtype_size(dtype)) {
    case 1: return complement<uint8_t>(data, bytes);
    case 2: return complement<uint16_t>(data, bytes);
    case 4: return complement<uint32_t>(data, bytes);
    default: return complement<uint64_t>(data, bytes);
  }
}

void fold(dist_reduce_op op, dist_dtype dtype, std::byte* to, const std::byte* from,
          std::size_t count) noexcept {
  const std::byte* const sources[] = {to, from};
  std::byte* const destination[] = {to};
  reduce_kernel(dtype, op)({sources, destination, 2, 1, count, 1.0, false});
}

void subtract(dist_dtype dtype, std::byte* to, const std::byte* from, std::size_t count) noexcept {
  const std::size_t size = dtype_size(dtype);
  alignas(64) std::byte negated[kBlockBytes];
  for (std::size_t at = 0; at < count; at += kBlockBytes / size) {
    const std::size_t block = std::min(kBlockBytes / size, count - at);
    std::memcpy(negated, from + at * size, block * size);
    negate(dtype, negated, block * size);
    fold(DIST_REDUCE_SUM, dtype, to + at * size, negated, block);
  }
}

}  // namespace

void in_place(InPlace op, dist_dtype dtype, std::byte* to, const std::byte* from,
              std::size_t count) noexcept {
  if (count == 0) return;
  const FpEnvironment environment;
  switch (op) {
    case InPlace::kReplace:
      if (to != from) std::memcpy(to, from, count * dtype_size(dtype));
      return;
    case InPlace::kAdd: return fold(DIST_REDUCE_SUM, dtype, to, from, count);
    case InPlace::kSubtract: return subtract(dtype, to, from, count);
    case InPlace::kMultiply: return fold(DIST_REDUCE_PROD, dtype, to, from, count);
    case InPlace::kDivide: return divide(dtype, to, from, to, count);
    case InPlace::kMin: return fold(DIST_REDUCE_MIN, dtype, to, from, count);
    case InPlace::kMax: return fold(DIST_REDUCE_MAX, dtype, to, from, count);
  }
}

}  // namespace dist
