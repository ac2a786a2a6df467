// SPDX-License-Identifier: Apache-2.0
// An oracle for exact sums: integers of 2304 bits in units of 2^-1074, rounded bit by bit according to the
// definition. It shares no code with the kernels.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/kernel/convert.hpp"
#include "dist/types.h"

namespace dist {
namespace {

struct Format {
  int precision;  // bits of a mantissa
  int least;      // exponent of the last bit of a subnormal
  int most;       // exponent of the first bit of the largest number
};

constexpr Format format_of(dist_dtype dtype) {
  switch (dtype) {
    case DIST_F16: return {11, -24, 15};
    case DIST_BF16: return {8, -133, 127};
    case DIST_F32: return {24, -149, 127};
    default: return {53, -1074, 1023};
  }
}

using Words = std::array<uint64_t, 36>;
inline constexpr int kUnit = -1074;

inline bool bit(const Words& words, int at) { return at >= 0 && (words[at / 64] >> at % 64 & 1) != 0; }

inline int first_bit(const Words& words) {  // -1 if all are zero
  int at = 64 * static_cast<int>(words.size()) - 1;
  while (at >= 0 && !bit(words, at)) --at;
  return at;
}

inline void add_at(Words& words, int at, uint64_t value) {
  const uint64_t parts[] = {value << at % 64, at % 64 == 0 ? 0 : value >> (64 - at % 64)};
  uint64_t carry = 0;
  for (std::size_t i = static_cast<std::size_t>(at) / 64, k = 0; i < words.size(); ++i, ++k) {
    const uint64_t part = k < 2 ? parts[k] : 0;
    const uint64_t sum = words[i] + part;
    const uint64_t with_carry = sum + carry;
    carry = (sum < part || with_carry < sum) ? 1 : 0;
    words[i] = with_carry;
  }
}

inline Words difference(const Words& larger, const Words& smaller) {
  Words result{};
  uint64_t borrow = 0;
  for (std::size_t i = 0; i < larger.size(); ++i) {
    result[i] = larger[i] - smaller[i] - borrow;
    borrow = larger[i] < smaller[i] || (larger[i] == smaller[i] && borrow != 0) ? 1 : 0;
  }
  return result;
}

inline bool less(const Words& a, const Words& b) {
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

// A sum of finite doubles.
class Exact {
 public:
  void add(double x) {
    if (x == 0) return;
    int exponent;
    const auto mantissa = static_cast<uint64_t>(std::ldexp(std::frexp(std::fabs(x), &exponent), 53));
    int at = exponent - 53 - kUnit;
    uint64_t value = mantissa;
    for (; at < 0; ++at) value >>= 1;  // subnormal: these bits are zero
    add_at(x < 0 ? negative_ : positive_, at, value);
  }
  bool zero() const { return positive_ == negative_; }

  // To nearest, ties to even; or to odd. Every result fits a double.
  double round(const Format& format, bool to_odd) const {
    const bool minus = less(positive_, negative_);
    const Words magnitude = minus ? difference(negative_, positive_) : difference(positive_, negative_);
    const int first = first_bit(magnitude);
    const int last = std::max(first - format.precision + 1, format.least - kUnit);
    uint64_t kept = 0;
    for (int at = first; at >= last; --at) kept = kept << 1 | (bit(magnitude, at) ? 1 : 0);
    bool below_half = false;
    for (int at = 0; at < std::min(last - 1, first + 1); ++at) below_half |= bit(magnitude, at);
    const bool half = bit(magnitude, last - 1);
    if (to_odd)
      kept |= half || below_half ? 1 : 0;
    else if (half && (below_half || (kept & 1) != 0))
      ++kept;
    const double value = std::ldexp(static_cast<double>(kept), last + kUnit);
    const double limit = std::ldexp(2 - std::ldexp(1.0, 1 - format.precision), format.most);
    if (value <= limit) return minus ? -value : value;
    const double beyond = to_odd ? limit : HUGE_VAL;
    return minus ? -beyond : beyond;
  }

 private:
  Words positive_{};
  Words negative_{};
};

inline double to_double(dist_dtype dtype, uint64_t bits) {
  switch (dtype) {
    case DIST_F16: return f32_from_f16(static_cast<uint16_t>(bits));
    case DIST_BF16: return f32_from_bf16(static_cast<uint16_t>(bits));
    case DIST_F32: return std::bit_cast<float>(static_cast<uint32_t>(bits));
    default: return std::bit_cast<double>(bits);
  }
}

// Returns the bits of a double that is representable in dtype.
inline uint64_t to_bits(dist_dtype dtype, double value) {
  switch (dtype) {
    case DIST_F16: return std::isnan(value) ? 0x7E00 : f16_from_f32(static_cast<float>(value));
    case DIST_BF16: return std::isnan(value) ? 0x7FC0 : bf16_from_f32(static_cast<float>(value));
    case DIST_F32: return std::isnan(value) ? 0x7FC00000 : std::bit_cast<uint32_t>(static_cast<float>(value));
    default: return std::isnan(value) ? 0x7FF8000000000000 : std::bit_cast<uint64_t>(value);
  }
}

inline double rounded(double value, const Format& format) {
  if (!std::isfinite(value) || value == 0) return value;
  Exact exact;
  exact.add(value);
  const double result = exact.round(format, false);
  return result == 0 ? std::copysign(0.0, value) : result;
}

// Follows the definition in exact.hpp literally.
inline uint64_t expected(dist_dtype dtype, const std::vector<uint64_t>& terms, const double* weights,
                         double divisor) {
  Exact exact;
  bool nan = false, plus = false, minus = false, all_minus_zero = true;
  for (std::size_t p = 0; p < terms.size(); ++p) {
    double x = to_double(dtype, terms[p]);
    if (weights != nullptr) x *= weights[p];
    nan |= std::isnan(x);
    plus |= x == HUGE_VAL;
    minus |= x == -HUGE_VAL;
    all_minus_zero &= x == 0 && std::signbit(x);
    if (std::isfinite(x)) exact.add(x);
  }
  double sum = all_minus_zero ? -0.0 : 0.0;
  if (nan || (plus && minus)) return to_bits(dtype, NAN);
  if (plus || minus) {
    sum = plus ? HUGE_VAL : -HUGE_VAL;
  } else if (!exact.zero()) {
    if (divisor == 1) {
      const double direct = exact.round(format_of(dtype), false);
      const bool vanished = direct == 0;  // then the result has the sign of the sum
      return to_bits(dtype, vanished ? std::copysign(0.0, exact.round(format_of(DIST_F64), true)) : direct);
    }
    sum = exact.round(format_of(DIST_F64), dtype != DIST_F64);
  }
  return to_bits(dtype, rounded(sum / divisor, format_of(dtype)));
}

}  // namespace
}  // namespace dist
