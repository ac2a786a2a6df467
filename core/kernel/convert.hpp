// SPDX-License-Identifier: Apache-2.0
// Converts f16 and bf16 to f32 and back, one element at a time. It uses integer arithmetic only, so that the
// floating-point environment cannot change the result. Conversion to f32 is exact; conversion from f32 rounds
// to nearest, ties to even. A NaN becomes a quiet NaN that keeps the upper bits of its payload.
#pragma once

#include <bit>
#include <cstdint>

namespace dist {

namespace detail {

// value / 2^shift, rounded to nearest, ties to even.
constexpr uint32_t shift_right_rounded(uint32_t value, uint32_t shift) noexcept {
  const uint32_t below_half = (1u << (shift - 1)) - 1;
  return (value + below_half + ((value >> shift) & 1u)) >> shift;
}

}  // namespace detail

constexpr float f32_from_bf16(uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

constexpr uint16_t bf16_from_f32(float value) noexcept {
  const auto bits = std::bit_cast<uint32_t>(value);
  const bool nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  return static_cast<uint16_t>(nan ? (bits >> 16) | 0x0040u : detail::shift_right_rounded(bits, 16));
}

constexpr float f32_from_f16(uint16_t bits) noexcept {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7FFFu;
  uint32_t wide;
  if (magnitude > 0x7C00u) {  // NaN
    wide = 0x7FC00000u | (magnitude << 13);
  } else if (magnitude == 0x7C00u) {
    wide = 0x7F800000u;
  } else if (magnitude >= 0x0400u) {
    wide = (magnitude << 13) + (112u << 23);  // the biases are 15 and 127
  } else {
    wide = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);  // subnormal: exact in f32
  }
  return std::bit_cast<float>(sign | wide);
}

constexpr uint16_t f16_from_f32(float value) noexcept {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  uint32_t narrow;
  if (magnitude > 0x7F800000u) {  // NaN
    narrow = 0x7E00u | ((magnitude >> 13) & 0x03FFu);
  } else if (magnitude >= 0x47800000u) {  // 2^16 and up
    narrow = 0x7C00u;
  } else if (magnitude >= 0x38800000u) {  // normal, 2^-14 and up; from 65520 on the carry makes it infinite
    narrow = detail::shift_right_rounded(magnitude - (112u << 23), 13);
  } else if (magnitude >= 0x33000000u) {  // subnormal, 2^-25 and up: counted in units of 2^-24
    narrow = detail::shift_right_rounded((magnitude & 0x007FFFFFu) | 0x00800000u, 126u - (magnitude >> 23));
  } else {
    narrow = 0;
  }
  return static_cast<uint16_t>(sign | narrow);
}

}  // namespace dist
