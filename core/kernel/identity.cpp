// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/identity.hpp"

#include <cstdint>
#include <cstring>
#include <limits>

namespace dist {
namespace {

template <class T>
void fill(T value, std::byte* to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * sizeof value, &value, sizeof value);
}

template <class T>
void fill_number(dist_reduce_op op, std::byte* to, std::size_t count) noexcept {
  using Limits = std::numeric_limits<T>;
  switch (op) {
    // <T> is explicit, since the negative of a small integer is an int.
    case DIST_REDUCE_PROD: return fill<T>(1, to, count);
    case DIST_REDUCE_MIN:
      return fill<T>(Limits::has_infinity ? Limits::infinity() : Limits::max(), to, count);
    case DIST_REDUCE_MAX:
      return fill<T>(Limits::has_infinity ? -Limits::infinity() : Limits::lowest(), to, count);
    default: return fill<T>(0, to, count);
  }
}

// The four identities of a 16-bit float, by their bits.
void fill_bits(uint16_t one, uint16_t infinity, dist_reduce_op op, std::byte* to,
               std::size_t count) noexcept {
  switch (op) {
    case DIST_REDUCE_PROD: return fill(one, to, count);
    case DIST_REDUCE_MIN: return fill(infinity, to, count);
    case DIST_REDUCE_MAX: return fill(static_cast<uint16_t>(infinity | 0x8000u), to, count);
    default: return fill(uint16_t{0}, to, count);
  }
}

}  // namespace

// @every dtype
void fill_identity(dist_dtype dtype, dist_reduce_op op, std::byte* to, std::size_t count) noexcept {
  switch (dtype) {
    case DIST_F16: return fill_bits(0x3C00, 0x7C00, op, to, count);
    case DIST_BF16: return fill_bits(0x3F80, 0x7F80, op, to, count);
    case DIST_F32: return fill_number<float>(op, to, count);
    case DIST_F64: return fill_number<double>(op, to, count);
    case DIST_I8: return fill_number<int8_t>(op, to, count);
    case DIST_U8: return fill_number<uint8_t>(op, to, count);
    case DIST_I16: return fill_number<int16_t>(op, to, count);
    case DIST_U16: return fill_number<uint16_t>(op, to, count);
    case DIST_I32: return fill_number<int32_t>(op, to, count);
    case DIST_U32: return fill_number<uint32_t>(op, to, count);
    case DIST_I64: return fill_number<int64_t>(op, to, count);
    case DIST_U64: return fill_number<uint64_t>(op, to, count);
    case DIST_COMPLEX64: {
      struct Complex {
        float re;
        float im;
      };
      return fill(Complex{op == DIST_REDUCE_PROD ? 1.0f : 0.0f, 0.0f}, to, count);
    }
    case DIST_BOOL: return fill(static_cast<uint8_t>(op == DIST_REDUCE_MIN), to, count);
    default: return;
  }
}

}  // namespace dist
