// SPDX-License-Identifier: Apache-2.0
// Converts f64 to 16-bit floats through f32 without double rounding. Must be called within an FpEnvironment.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/kernel/convert.hpp"

namespace dist {

// Rounds to odd. Rounding the result once more, to fewer bits, gives the same as rounding `value` itself.
inline float f32_to_odd(double value) noexcept {
  const auto nearest = static_cast<float>(value);
  const auto bits = std::bit_cast<uint32_t>(nearest);
  if (static_cast<double>(nearest) == value || std::isnan(value) || (bits & 1) != 0) return nearest;
  return std::bit_cast<float>(std::fabs(nearest) < std::fabs(value) ? bits + 1 : bits - 1);
}

inline uint16_t f16_from_f64(double value) noexcept { return f16_from_f32(f32_to_odd(value)); }
inline uint16_t bf16_from_f64(double value) noexcept { return bf16_from_f32(f32_to_odd(value)); }

}  // namespace dist
