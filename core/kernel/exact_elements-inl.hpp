// SPDX-License-Identifier: Apache-2.0
// Defines how the lanes of an exact sum are read and rounded. Compiled once for each SIMD target. A format
// has
//
//     In            tag of the lanes in memory
//     kVectors      number of such vectors that are summed together, as four vectors of f64; enough to fill
//                   the CPU's pipelines and few enough for its registers
//     part<i>       one of the four vectors of f64
//     Scan          integer tag of the lanes whose exponents are recorded, in kScans vectors; scan<k> covers
//                   4 / kScans parts, starting with part k * 4 / kScans
//     kBits         bits of a mantissa, as scanned
//     kFraction     bit position of the exponent's field; kLeastField is the field of the smallest normal
//                   number
//     kToOdd        whether the sum is rounded once more
//     kMark         results whose bits are at least this value are NaNs with the sign bit set
//     narrow        the quotients, rounded to the dtype, as kVectors vectors in memory order
#include <cstddef>
#include <cstdint>

#include "core/kernel/elements-inl.hpp"
#include "core/kernel/loop-inl.hpp"
#include "hwy/highway.h"

#if defined(DIST_KERNEL_EXACT_ELEMENTS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef DIST_KERNEL_EXACT_ELEMENTS_INL_HPP
#undef DIST_KERNEL_EXACT_ELEMENTS_INL_HPP
#else
#define DIST_KERNEL_EXACT_ELEMENTS_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace dist {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Wide = hn::ScalableTag<double>;
using WideBits = hn::ScalableTag<int64_t>;
using WideVec = hn::Vec<Wide>;
using Single = hn::ScalableTag<float>;

inline constexpr std::size_t kParts = 4;

struct F64Lanes {
  using In = Wide;
  using Scan = WideBits;
  static constexpr std::size_t kVectors = 4;
  static constexpr std::size_t kScans = 4;
  static constexpr int kBits = 53;
  static constexpr int kFraction = 52;
  static constexpr int kLeastField = 1;
  static constexpr bool kToOdd = false;
  static constexpr uint64_t kMark = 0xFFF8000000000000;

  template <std::size_t i>
  static HWY_INLINE WideVec part(const double* from) {
    return hn::LoadU(In(), from + i * hn::MaxLanes(In()));
  }
  template <std::size_t k>
  static HWY_INLINE hn::Vec<Scan> scan(const double* from) {
    return hn::BitCast(Scan(), part<k>(from));
  }
  static HWY_INLINE void narrow(const WideVec* parts, hn::Vec<In>* out) {
    DIST_UNROLL
    for (std::size_t i = 0; i < kParts; ++i) out[i] = parts[i];
  }
};

// Half of a vector of f32, as f64; exact.
template <std::size_t kHalf>
HWY_INLINE WideVec widened(hn::Vec<Single> value) {
  const hn::Half<Single> half;
  if constexpr (kHalf == 0)
    return hn::PromoteTo(Wide(), hn::LowerHalf(half, value));
  else
    return hn::PromoteTo(Wide(), hn::UpperHalf(half, value));
}

HWY_INLINE hn::Vec<Single> narrowed(const WideVec* two) {
  const hn::Half<Single> half;
  return hn::Combine(Single(), hn::DemoteTo(half, two[1]), hn::DemoteTo(half, two[0]));
}

struct F32Lanes {
  using In = Single;
  using Scan = hn::RebindToSigned<Single>;
  static constexpr std::size_t kVectors = 2;
  static constexpr std::size_t kScans = 2;
  static constexpr int kBits = 24;
  static constexpr int kFraction = 23;
  static constexpr int kLeastField = 1;
  static constexpr bool kToOdd = true;
  static constexpr uint32_t kMark = 0xFFC00000;

  // Loads half a vector, so that no lanes have to move from the upper half of a whole one.
  template <std::size_t i>
  static HWY_INLINE WideVec part(const float* from) {
    const hn::Half<Single> half;
    return hn::PromoteTo(Wide(), hn::LoadU(half, from + i * hn::MaxLanes(half)));
  }
  template <std::size_t k>
  static HWY_INLINE hn::Vec<Scan> scan(const float* from) {
    return hn::BitCast(Scan(), hn::LoadU(In(), from + k * hn::MaxLanes(In())));
  }
  static HWY_INLINE void narrow(const WideVec* parts, hn::Vec<In>* out) {
    out[0] = narrowed(parts);
    out[1] = narrowed(parts + 2);
  }
};

// Format: F16 or Bf16. Their smallest normal number is 2^kLeastExponent.
template <class Format, int kMantissa, int kLeastExponent>
struct NarrowLanes {
  using In = typename Format::D16;
  using Scan = hn::RebindToSigned<Single>;
  static constexpr std::size_t kVectors = 1;
  static constexpr std::size_t kScans = 2;
  static constexpr int kBits = kMantissa;
  static constexpr int kFraction = 23;
  static constexpr int kLeastField = 127 + kLeastExponent;  // f32's
  static constexpr bool kToOdd = true;
  static constexpr uint16_t kMark = kMantissa == 11 ? 0xFE00 : 0xFFC0;

  template <std::size_t i>
  static HWY_INLINE WideVec part(const uint16_t* from) {
    return widened<i % 2>(floats<i / 2>(from));
  }
  template <std::size_t k>
  static HWY_INLINE hn::Vec<Scan> scan(const uint16_t* from) {
    return hn::BitCast(Scan(), floats<k>(from));
  }
  static HWY_INLINE void narrow(const WideVec* parts, hn::Vec<In>* out) {
    const WideVec first[] = {rounded(parts[0]), rounded(parts[1])};
    const WideVec second[] = {rounded(parts[2]), rounded(parts[3])};
    out[0] = Format::narrow({narrowed(first), narrowed(second)});
  }

 private:
  template <std::size_t k>
  static HWY_INLINE hn::Vec<Single> floats(const uint16_t* from) {
    const auto both = Format::load(from);
    return k == 0 ? both.first : both.second;
  }

  // Rounds to the format's precision, so that the conversion to f32 that follows is exact and does not round
  // a second time. To round, 1.5 times a power of two is added and subtracted: in that sum a double's last
  // place is the format's last place. The power is at most 2^200, as larger values become infinite in any
  // case.
  static HWY_INLINE WideVec rounded(WideVec value) {
    const Wide d;
    const auto exponent = hn::BitCast(d, hn::Set(WideBits(), int64_t{0x7FF0000000000000}));
    const auto power =
        hn::Min(hn::Max(hn::And(value, exponent), hn::Set(d, kLeastPower)), hn::Set(d, 0x1p200));
    const auto beside = hn::Mul(power, hn::Set(d, kBeside));
    return hn::CopySign(hn::Sub(hn::Add(value, beside), beside), value);
  }
  static constexpr double kLeastPower = kLeastExponent == -14 ? 0x1p-14 : 0x1p-126;
  static constexpr double kBeside = kMantissa == 11 ? 0x1.8p42 : 0x1.8p45;
  static_assert((kMantissa == 11 && kLeastExponent == -14) || (kMantissa == 8 && kLeastExponent == -126));
};

using F16Lanes = NarrowLanes<F16, 11, -14>;
using Bf16Lanes = NarrowLanes<Bf16, 8, -126>;

// A format whose contributions are multiplied by weights: these are scanned as f64, part by part.
template <class Format>
struct WeightedLanes : Format {
  using Scan = WideBits;
  static constexpr std::size_t kScans = kParts;
  static constexpr int kBits = 53;
  static constexpr int kFraction = 52;
  static constexpr int kLeastField = 1;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace dist
HWY_AFTER_NAMESPACE();

#endif  // DIST_KERNEL_EXACT_ELEMENTS_INL_HPP
