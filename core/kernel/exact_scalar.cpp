// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/exact_scalar.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "core/kernel/convert.hpp"

namespace dist {
namespace {

constexpr uint64_t kNan = 0x7FF8000000000000;
constexpr uint64_t kInfinity = 0x7FF0000000000000;
constexpr uint64_t kSign = uint64_t{1} << 63;

// A fixed-point number with a bit for each power of two of any double, and room for 2^30 of the largest.
// Digits have 32 bits and are kept in 64, so that additions leave the carries for later.
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

  // The sum as a double, +0 if it is zero. To odd: truncated, the last bit set if that lost anything; so that
  // rounding the result once more, to fewer bits, is as good as rounding the sum.
  double round(bool to_odd) noexcept {
    const uint64_t sign = carry() ? kSign : 0;
    int top = kDigits - 1;
    while (top >= 0 && digits_[top] == 0) --top;
    if (top < 0) return 0;
    const unsigned leading = 32 * static_cast<unsigned>(top) + std::bit_width(digit(top)) - 1;
    const unsigned last = leading < 52 ? 0 : leading - 52;  // of the 53 bits that stay, or of a subnormal's
    uint64_t mantissa = bits_from(last);
    if (to_odd) {
      mantissa |= any_below(last) ? 1 : 0;
    } else if (last > 0 && (bits_from(last - 1) & 1) != 0) {
      mantissa += any_below(last - 1) ? 1 : mantissa & 1;
    }
    // The leading bit, and what rounding up may carry over it, count the exponent up.
    const uint64_t magnitude = (uint64_t{last} << 52) + mantissa;
    return std::bit_cast<double>(sign | (magnitude < kInfinity ? magnitude : kInfinity - (to_odd ? 1 : 0)));
  }

 private:
  static constexpr int kDigits = 68;
  static constexpr int64_t kMask = 0xFFFFFFFF;

  uint64_t digit(unsigned i) const noexcept { return static_cast<uint64_t>(digits_[i]); }

  // Leaves the magnitude, in digits of 32 bits; true if the sum was negative.
  bool carry() noexcept {
    if (spread_carries() == 0) return false;
    for (int64_t& digit : digits_) digit = -digit;
    spread_carries();
    return true;
  }

  // Returns what is left above: 0 or, of a negative sum, -1.
  int64_t spread_carries() noexcept {
    int64_t carry = 0;
    for (int64_t& digit : digits_) {
      carry += digit;
      digit = carry & kMask;
      carry >>= 32;
    }
    return carry;
  }

  // The 64 bits that begin with bit `at`; every sum ends below the last digits.
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

// ---- Elements: how one is read, and how a double is written, rounded once. -----------------------

struct Double {
  using Stored = uint64_t;
  static constexpr bool kToOdd = false;
  static double read(Stored stored) { return std::bit_cast<double>(stored); }
  static Stored write(double value) { return std::bit_cast<Stored>(value); }
};

struct Float {
  using Stored = uint32_t;
  static constexpr bool kToOdd = true;
  static double read(Stored stored) { return std::bit_cast<float>(stored); }
  static Stored write(double value) { return std::bit_cast<Stored>(static_cast<float>(value)); }
};

// Rounded to odd, for a narrower type after it.
float f32_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto bits = std::bit_cast<uint32_t>(nearest);
  if (static_cast<double>(nearest) == value || std::isnan(value) || (bits & 1) != 0) return nearest;
  return std::bit_cast<float>(std::fabs(nearest) < std::fabs(value) ? bits + 1 : bits - 1);
}

struct Half {
  using Stored = uint16_t;
  static constexpr bool kToOdd = true;
  static double read(Stored stored) { return f32_from_f16(stored); }
  static Stored write(double value) { return f16_from_f32(f32_to_odd(value)); }
};

struct BrainFloat {
  using Stored = uint16_t;
  static constexpr bool kToOdd = true;
  static double read(Stored stored) { return f32_from_bf16(stored); }
  static Stored write(double value) { return bf16_from_f32(f32_to_odd(value)); }
};

// ---- The kernel ----------------------------------------------------------------------------------

template <class Element>
double exact_sum(const ExactArguments& args, std::size_t i) noexcept {
  Superaccumulator sum;
  double special = 0;  // the infinities and NaNs, added as the CPU adds them
  bool all_negative_zero = true;
  for (std::size_t p = 0; p < args.num_src; ++p) {
    typename Element::Stored stored;
    std::memcpy(&stored, args.src[p] + i * sizeof stored, sizeof stored);
    double term = Element::read(stored);
    if (args.weights != nullptr) term *= args.weights[p];
    all_negative_zero = all_negative_zero && std::bit_cast<uint64_t>(term) == kSign;
    if (std::isfinite(term))
      sum.add(term);
    else
      special += term;
  }
  if (special != 0) return special;  // NaN too is unequal
  return all_negative_zero ? -0.0 : sum.round(Element::kToOdd);
}

template <class Element>
typename Element::Stored result(const ExactArguments& args, std::size_t i) noexcept {
  double value = exact_sum<Element>(args, i);
  if (args.divisor != 1) value /= args.divisor;
  return Element::write(std::isnan(value) ? std::bit_cast<double>(kNan) : value);
}

template <class Element>
uint64_t exact_element(const ExactArguments& args, std::size_t i) noexcept {
  return result<Element>(args, i);
}

template <class Element>
void exact(const ExactArguments& args) noexcept {
  for (std::size_t i = 0; i < args.count; ++i) {
    const auto stored = result<Element>(args, i);
    for (std::size_t d = 0; d < args.num_dst; ++d) {
      std::memcpy(args.dst[d] + i * sizeof stored, &stored, sizeof stored);
    }
  }
}

}  // namespace

ExactKernel scalar_exact_kernel(dist_dtype dtype) noexcept {
  switch (dtype) {
    case DIST_F16: return exact<Half>;
    case DIST_BF16: return exact<BrainFloat>;
    case DIST_F32: return exact<Float>;
    case DIST_F64: return exact<Double>;
    default: return nullptr;
  }
}

ExactElement scalar_exact_element(dist_dtype dtype) noexcept {
  switch (dtype) {
    case DIST_F16: return exact_element<Half>;
    case DIST_BF16: return exact_element<BrainFloat>;
    case DIST_F32: return exact_element<Float>;
    case DIST_F64: return exact_element<Double>;
    default: return nullptr;
  }
}

}  // namespace dist
