// SPDX-License-Identifier: Apache-2.0
// The exact sum of any number of doubles, as a wide fixed-point number.
//
// Invariant: the state depends only on which numbers were added, not on their order. It consists of integers
// only, so the floating-point environment does not affect it, and it may be copied as bytes.
#pragma once

#include <bit>
#include <cstdint>

namespace dist {

// A fixed-point number with a bit for every power of two that occurs in a double, and room for 2^64 times the
// largest double. A digit has 32 bits and is stored in 64, so that carries have to be propagated only after
// 2^30 additions.
class Superaccumulator {
 public:
  void add(double finite) noexcept {
    const auto bits = std::bit_cast<uint64_t>(finite);
    const auto field = static_cast<unsigned>(bits >> 52) & 0x7FFu;
    const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
    const uint64_t mantissa = field == 0 ? fraction : fraction | uint64_t{1} << 52;
    const unsigned at = field == 0 ? 0 : field - 1;
    const unsigned shift = at % 32;
    const uint64_t low = mantissa << shift;
    const uint64_t high = shift == 0 ? 0 : mantissa >> (64 - shift);
    const int64_t sign = (bits & kSign) != 0 ? -1 : 1;
    int64_t* digit = digits_ + at / 32;
    digit[0] += sign * static_cast<int64_t>(low & kMask);
    digit[1] += sign * static_cast<int64_t>(low >> 32);
    digit[2] += sign * static_cast<int64_t>(high);
  }

  // After settle(), up to 2^30 further sums may be added, each of which is settled as well.
  void add(const Superaccumulator& other) noexcept {
    for (int i = 0; i < kDigits; ++i) digits_[i] += other.digits_[i];
  }

  // Propagates the carries, which makes room for 2^30 further additions.
  void settle() noexcept { digits_[kDigits - 1] += spread_carries() * (kMask + 1); }

  // Returns the sum as a double, +0 if it is zero. With `to_odd` the sum is truncated, and the last bit is
  // set if the result is inexact; rounding this result to fewer bits gives the same as rounding the sum. The
  // sum must not be used afterwards.
  double round(bool to_odd) noexcept {
    const uint64_t sign = carry() ? kSign : 0;
    int top = kDigits - 1;
    while (top >= 0 && digits_[top] == 0) --top;
    if (top < 0) return 0;
    const unsigned leading = 32 * static_cast<unsigned>(top) + std::bit_width(digit(top)) - 1;
    const unsigned last = leading < 52 ? 0 : leading - 52;  // the lowest bit that is kept
    uint64_t mantissa = bits_from(last);
    if (to_odd) {
      mantissa |= any_below(last) ? 1 : 0;
    } else if (last > 0 && (bits_from(last - 1) & 1) != 0) {
      mantissa += any_below(last - 1) ? 1 : mantissa & 1;
    }
    // The leading bit is added to the exponent field, and so is the carry if rounding up causes one.
    const uint64_t magnitude = (uint64_t{last} << 52) + mantissa;
    return std::bit_cast<double>(sign | (magnitude < kInfinity ? magnitude : kInfinity - (to_odd ? 1 : 0)));
  }

 private:
  static constexpr int kDigits = 68;
  static constexpr int64_t kMask = 0xFFFFFFFF;
  static constexpr uint64_t kSign = uint64_t{1} << 63;
  static constexpr uint64_t kInfinity = 0x7FF0000000000000;

  uint64_t digit(unsigned i) const noexcept { return static_cast<uint64_t>(digits_[i]); }

  // Converts the sum to its magnitude, in digits of 32 bits. Returns true if it was negative.
  bool carry() noexcept {
    if (spread_carries() == 0) return false;
    for (int64_t& digit : digits_) digit = -digit;
    spread_carries();
    return true;
  }

  // Returns the carry out of the last digit: 0, or -1 if the sum is negative.
  int64_t spread_carries() noexcept {
    int64_t carry = 0;
    for (int64_t& digit : digits_) {
      carry += digit;
      digit = carry & kMask;
      carry >>= 32;
    }
    return carry;
  }

  // The 64 bits that begin at bit `at`. The last digits of every sum are 0, so this never reads beyond them.
  uint64_t bits_from(unsigned at) const noexcept {
    const unsigned i = at / 32;
    const unsigned shift = at % 32;
    const uint64_t low = (digit(i) | digit(i + 1) << 32) >> shift;
    return shift == 0 ? low : low | digit(i + 2) << (64 - shift);
  }

  bool any_below(unsigned at) const noexcept {
    uint64_t any = digit(at / 32) & ((uint64_t{1} << at % 32) - 1);
    for (unsigned i = 0; i < at / 32; ++i) any |= digit(i);
    return any != 0;
  }

  int64_t digits_[kDigits] = {};
};

}  // namespace dist
