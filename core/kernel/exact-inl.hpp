// SPDX-License-Identifier: Apache-2.0
// Exact sums in f64 lanes, compiled once for each SIMD target. For each vector of elements:
//
//   1. The first pass adds the contributions in f64 and records their largest and smallest nonzero exponents.
//      If at most 53 bits lie between the first bit of the largest possible sum and the last bit of the
//      smallest term, no addition has rounded and the sum is exact. This is nearly always the case for f32
//      and narrower dtypes.
//   2. Otherwise a second pass splits each term over levels. A level is a window of bits, and the window of
//      the next level lies directly below it. The sum of a level starts at 1.5 * 2^c. A term that is added to
//      it loses the bits below 2^(c - 52); the next level receives them. The windows are placed by the
//      exponents so that no other rounding occurs and every level is exact.
//   3. The levels are added from the lowest to the highest by error-free additions, which yield the rounded
//      sum and the rounding error. Some lanes cannot be finished in this way: f64 infinities and NaNs, a
//      range that is too wide, and a tie where the sum would be rounded twice. They are marked and summed by
//      exact_scalar.cpp.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/kernel/exact.hpp"
#include "core/kernel/exact_elements-inl.hpp"
#include "core/kernel/exact_scalar.hpp"
#include "core/kernel/loop-inl.hpp"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

#if defined(DIST_KERNEL_EXACT_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef DIST_KERNEL_EXACT_INL_HPP
#undef DIST_KERNEL_EXACT_INL_HPP
#else
#define DIST_KERNEL_EXACT_INL_HPP
#endif

#undef DIST_UNROLL_LEVELS
#if HWY_COMPILER_CLANG
#define DIST_UNROLL_LEVELS _Pragma("clang loop unroll(full)")
#else
#define DIST_UNROLL_LEVELS _Pragma("GCC unroll 8")
#endif

HWY_BEFORE_NAMESPACE();
namespace dist {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// How many levels a sum may have. Seven suffice for any 4096 contributions of f32.
inline constexpr int kFewLevels = 2;
inline constexpr int kSomeLevels = 4;
inline constexpr int kMostLevels = 7;

// How many bits num_src terms can add at the top of a sum, and how many bits remain for the levels.
class Room {
 public:
  explicit HWY_INLINE Room(std::size_t num_src) : carries_(std::bit_width(num_src - 1)) {}
  HWY_INLINE int carries() const { return carries_; }
  // Each level but the last needs one bit for its sign and one for 1.5 * 2^c.
  HWY_INLINE int window() const { return 52 - carries_; }
  // The widest spread that so many levels add up exactly: from the largest term's first bit to the smallest's
  // last.
  HWY_INLINE int spread(int levels) const { return (levels - 1) * window() + 53 - carries_; }

 private:
  int carries_;
};

// The exponents of a lane's terms: `top` is the exponent field of the largest term, and `spread` is the
// number of bits from the first bit of the largest term to the last bit of the smallest one. A lane of zeros
// has spread 0.
struct Exponents {
  hn::Vec<WideBits> top;
  hn::Vec<WideBits> spread;
};

// Records the largest and the smallest magnitude, as bits. Lanes are signed, because every target can compare
// signed ones. least_ is the maximum of the lowest integer minus each magnitude. These differences wrap, so
// that a zero gives the lowest value, and the maximum belongs to the smallest other magnitude.
template <class Format>
class Scanner {
 public:
  using D = typename Format::Scan;
  using T = hn::TFromD<D>;

  // Written out, since a constructor that the compiler generates is not compiled for the target.
  HWY_INLINE Scanner() : most_(hn::Zero(D())), least_(lowest()) {}

  HWY_INLINE void note(hn::Vec<D> bits) {
    const auto magnitude = hn::And(bits, hn::Set(D(), hwy::LimitsMax<T>()));
    most_ = hn::Max(most_, magnitude);
    least_ = hn::Max(least_, hn::Sub(lowest(), magnitude));
  }
  HWY_INLINE hn::Vec<D> top() const { return field(most_); }
  HWY_INLINE hn::Vec<D> spread() const {
    const auto least = hn::Max(field(hn::Sub(lowest(), least_)), set(Format::kLeastField));
    const auto spread = hn::Add(hn::Sub(top(), least), set(Format::kBits));
    // In f64 a sum of 16-bit or f32 terms can overflow only if one of them is infinite. Then, or with a NaN,
    // the plain sum is right.
    auto settled = hn::Eq(most_, hn::Zero(D()));
    if constexpr (sizeof(T) == 4) settled = hn::Or(settled, hn::Eq(top(), set(0xFF)));
    return hn::IfThenZeroElse(settled, spread);
  }

 private:
  static HWY_INLINE hn::Vec<D> set(int value) { return hn::Set(D(), static_cast<T>(value)); }
  static HWY_INLINE hn::Vec<D> lowest() { return hn::Set(D(), hwy::LimitsMin<T>()); }
  static HWY_INLINE hn::Vec<D> field(hn::Vec<D> magnitude) {
    const hn::RebindToUnsigned<D> unsigned_lanes;
    return hn::BitCast(D(), hn::ShiftRight<Format::kFraction>(hn::BitCast(unsigned_lanes, magnitude)));
  }

  hn::Vec<D> most_;
  hn::Vec<D> least_;
};

// An error-free addition: returns a + b rounded, and in `lost` what the rounding lost.
HWY_INLINE WideVec two_sum(WideVec a, WideVec b, WideVec& lost) {
  const auto sum = hn::Add(a, b);
  const auto from_b = hn::Sub(sum, a);
  lost = hn::Add(hn::Sub(a, hn::Sub(sum, from_b)), hn::Sub(b, from_b));
  return sum;
}

// Returns a sum rounded to odd: truncated, with the last bit set if truncation lost anything. `nearest` is
// the sum rounded to nearest, and `lost` has the sign of what that rounding took away.
HWY_INLINE WideVec to_odd(WideVec nearest, WideVec lost) {
  const WideBits d;
  const auto bits = hn::BitCast(d, nearest);
  const auto rounded_away = hn::BroadcastSignBit(hn::Xor(bits, hn::BitCast(d, lost)));  // -1 or 0
  const auto odd = hn::Or(hn::Add(bits, rounded_away), hn::Set(d, int64_t{1}));
  return hn::IfThenElse(hn::Eq(lost, hn::Zero(Wide())), nearest, hn::BitCast(Wide(), odd));
}

// The sums of a lane's levels, the highest first.
template <int kLevels>
struct Levels {
  HWY_INLINE void add(WideVec term) {
    DIST_UNROLL_LEVELS
    for (int k = 0; k < kLevels - 1; ++k) {
      const auto raised = hn::Add(sum[k], term);
      term = hn::Sub(term, hn::Sub(raised, sum[k]));
      sum[k] = raised;
    }
    sum[kLevels - 1] = hn::Add(sum[kLevels - 1], term);
  }
  WideVec sum[kLevels];
};

template <class Format, bool kWeighted>
class ExactLoop {
 public:
  using In = typename Format::In;
  using T = hn::TFromD<In>;
  static constexpr std::size_t kLanes = hn::MaxLanes(In());
  static constexpr std::size_t kStep = Format::kVectors * kLanes;

  HWY_INLINE ExactLoop(const ExactArguments& args, ExactElement element)
      : args_(args), element_(element), room_(args.num_src) {}

  // Processes n elements, at most kStep. `wide` is true if the terms of the last step had too wide a spread
  // for a plain sum. The same is then expected of this step, so nothing is added before its exponents are
  // known.
  HWY_INLINE void step(std::size_t at, std::size_t n, bool stream, bool& wide) const {
    WideVec parts[kParts];
    hn::Vec<In> result[Format::kVectors];
    const bool settled = sum(at, n, wide, parts);
    Format::narrow(parts, result);
    if (HWY_UNLIKELY(!settled || n < kStep)) return store_lanes(result, at, n);
    for (std::size_t d = 0; d < args_.num_dst; ++d) {
      T* to = reinterpret_cast<T*>(args_.dst[d]) + at;
      DIST_UNROLL_LEVELS
      for (std::size_t v = 0; v < Format::kVectors; ++v) {
        if (stream)
          hn::Stream(result[v], In(), to + v * kLanes);
        else
          hn::StoreU(result[v], In(), to + v * kLanes);
      }
    }
  }

 private:
  using Scan = typename Format::Scan;
  static constexpr std::size_t kScans = Format::kScans;
  static constexpr bool kScansWide = kScans == kParts;

  struct Lanes {
    HWY_ALIGN T at[kStep];
  };

  // The address of source p's n elements, from which a whole step can be read.
  HWY_INLINE const T* source(std::size_t p, std::size_t at, std::size_t n, Lanes& end) const {
    const T* from = reinterpret_cast<const T*>(args_.src[p]) + at;
    return HWY_LIKELY(n == kStep) ? from : copied(from, n, end);
  }
  static HWY_NOINLINE const T* copied(const T* from, std::size_t n, Lanes& end) {
    std::memset(end.at, 0, sizeof end.at);
    std::memcpy(end.at, from, n * sizeof(T));
    return end.at;
  }

  template <std::size_t i>
  HWY_INLINE WideVec term(const T* from, std::size_t p) const {
    const auto value = Format::template part<i>(from);
    if constexpr (kWeighted)
      return hn::Mul(value, hn::Set(Wide(), args_.weights[p]));
    else
      return value;
  }

  // Sums n elements. Returns false if lanes are marked.
  HWY_INLINE bool sum(std::size_t at, std::size_t n, bool& wide, WideVec* parts) const {
    Scanner<Format> scanners[kScans];
    const bool added = !wide;
    if (added)
      pass<true, true>(at, n, scanners, parts);
    else
      pass<true, false>(at, n, scanners, parts);
    auto widest = scanners[0].spread();
    DIST_UNROLL_LEVELS
    for (std::size_t k = 1; k < kScans; ++k) widest = hn::Max(widest, scanners[k].spread());
    wide = !fits(Scan(), widest, 1);
    if (wide) return deepen(at, n, scanners, widest, parts);
    if (!added) pass<false, true>(at, n, scanners, parts);
    DIST_UNROLL_LEVELS
    for (std::size_t i = 0; i < kParts; ++i) parts[i] = finish(parts[i]);
    return true;
  }

  // Goes once through all terms, and records their exponents, or adds them up, or both.
  template <bool kNote, bool kAdd>
  HWY_INLINE void pass(std::size_t at, std::size_t n, Scanner<Format>* scanners, WideVec* sums) const {
    Lanes end;
    if constexpr (kAdd) {
      DIST_UNROLL_LEVELS
      for (std::size_t i = 0; i < kParts; ++i) sums[i] = hn::Set(Wide(), -0.0);
    }
    for (std::size_t p = 0; p < args_.num_src; ++p) {
      const T* from = source(p, at, n, end);
      if constexpr (kNote) note(from, p, scanners);
      if constexpr (kAdd) {
        sums[0] = hn::Add(sums[0], term<0>(from, p));
        sums[1] = hn::Add(sums[1], term<1>(from, p));
        sums[2] = hn::Add(sums[2], term<2>(from, p));
        sums[3] = hn::Add(sums[3], term<3>(from, p));
      }
    }
  }

  HWY_INLINE void note(const T* from, std::size_t p, Scanner<Format>* scanners) const {
    if constexpr (kScansWide) {
      scanners[0].note(hn::BitCast(WideBits(), term<0>(from, p)));
      scanners[1].note(hn::BitCast(WideBits(), term<1>(from, p)));
      scanners[2].note(hn::BitCast(WideBits(), term<2>(from, p)));
      scanners[3].note(hn::BitCast(WideBits(), term<3>(from, p)));
    } else {
      scanners[0].note(Format::template scan<0>(from));
      scanners[1].note(Format::template scan<1>(from));
    }
  }

  // Sums by as many levels as the widest spread needs.
  HWY_INLINE bool deepen(std::size_t at, std::size_t n, const Scanner<Format>* scanners, hn::Vec<Scan> widest,
                         WideVec* parts) const {
    Exponents exponents[kParts];
    DIST_UNROLL_LEVELS
    for (std::size_t k = 0; k < kScans; ++k) {
      const auto spread = scanners[k].spread();
      if constexpr (kScansWide) {
        exponents[k] = {scanners[k].top(), spread};
      } else {
        const hn::Half<Scan> half;
        const auto top = hn::Add(scanners[k].top(), hn::Set(Scan(), 1023 - 127));
        exponents[2 * k].top = hn::PromoteTo(WideBits(), hn::LowerHalf(half, top));
        exponents[2 * k].spread = hn::PromoteTo(WideBits(), hn::LowerHalf(half, spread));
        exponents[2 * k + 1].top = hn::PromoteTo(WideBits(), hn::UpperHalf(half, top));
        exponents[2 * k + 1].spread = hn::PromoteTo(WideBits(), hn::UpperHalf(half, spread));
      }
    }
    if (HWY_LIKELY(fits(Scan(), widest, kFewLevels)))
      return deep<kFewLevels, 0, kParts>(at, n, exponents, parts);
    // Pass copies: objects whose address is passed to a call would not stay in registers, even on the usual
    // path.
    Exponents far_exponents[kParts];
    WideVec results[kParts];
    DIST_UNROLL_LEVELS
    for (std::size_t i = 0; i < kParts; ++i) far_exponents[i] = exponents[i];
    const bool settled = fits(Scan(), widest, kSomeLevels)
                             ? deeper<kSomeLevels>(at, n, far_exponents, results)
                             : deeper<kMostLevels>(at, n, far_exponents, results);
    DIST_UNROLL_LEVELS
    for (std::size_t i = 0; i < kParts; ++i) parts[i] = results[i];
    return settled;
  }

  template <class D>
  HWY_INLINE bool fits(D d, hn::Vec<D> spread, int levels) const {
    return hn::AllFalse(d, hn::Gt(spread, hn::Set(d, static_cast<hn::TFromD<D> >(room_.spread(levels)))));
  }

  // The start of level k's sum: 1.5 * 2^c, with room above the terms for their carries and a sign.
  HWY_INLINE WideVec start(const Exponents& exponents, int k) const {
    auto field = hn::Add(exponents.top, set(room_.carries() + 2 - k * room_.window()));
    if constexpr (kScansWide) field = hn::Max(field, set(1));  // whose last place is the smallest double
    const auto half = hn::Set(WideBits(), int64_t{1} << 51);
    return hn::BitCast(Wide(), hn::Or(hn::ShiftLeft<52>(field), half));
  }

  // Not inlined, since it is rarely needed.
  template <int kLevels>
  HWY_NOINLINE bool deeper(std::size_t at, std::size_t n, const Exponents* exponents, WideVec* parts) const {
    const bool first = deep<kLevels, 0, 2>(at, n, exponents, parts);
    const bool second = deep<kLevels, 2, 2>(at, n, exponents + 2, parts + 2);
    return first & second;
  }

  // Sums kCount parts, from part i on.
  template <int kLevels, std::size_t i, std::size_t kCount>
  HWY_INLINE bool deep(std::size_t at, std::size_t n, const Exponents* exponents, WideVec* parts) const {
    Lanes end;
    Levels<kLevels> levels[kCount];
    DIST_UNROLL_LEVELS
    for (std::size_t j = 0; j < kCount; ++j) {
      DIST_UNROLL_LEVELS
      for (int k = 0; k < kLevels - 1; ++k) levels[j].sum[k] = start(exponents[j], k);
      levels[j].sum[kLevels - 1] = hn::Set(Wide(), -0.0);
    }
    for (std::size_t p = 0; p < args_.num_src; ++p) {
      const T* from = source(p, at, n, end);
      levels[0].add(term<i>(from, p));
      levels[1].add(term<i + 1>(from, p));
      if constexpr (kCount > 2) levels[2].add(term<i + 2>(from, p));
      if constexpr (kCount > 2) levels[3].add(term<i + 3>(from, p));
    }
    bool settled = true;
    DIST_UNROLL_LEVELS
    for (std::size_t j = 0; j < kCount; ++j) settled &= total<kLevels>(exponents[j], levels[j], parts[j]);
    return settled;
  }

  template <int kLevels>
  HWY_INLINE bool total(const Exponents& exponents, const Levels<kLevels>& levels, WideVec& part) const {
    const WideVec lowest = levels.sum[kLevels - 1];
    auto sum = lowest;
    WideVec lost = hn::Zero(Wide());
    DIST_UNROLL_LEVELS
    for (int k = kLevels - 2; k >= 0; --k) {
      WideVec lost_here;
      sum = two_sum(hn::Sub(levels.sum[k], start(exponents, k)), sum, lost_here);
      const bool first = k == kLevels - 2;
      lost = first ? lost_here : hn::IfThenElse(hn::Eq(lost_here, hn::Zero(Wide())), lost, lost_here);
    }
    const auto marked = unsettled<kLevels>(exponents, sum, lost);
    if constexpr (Format::kToOdd) sum = to_odd(sum, lost);
    // If all terms are zeros, the lowest level has the right sign: it is -0 if all terms are -0.
    const auto zeros = hn::Eq(exponents.spread, hn::Zero(WideBits()));
    sum = finish(hn::IfThenElse(hn::RebindMask(Wide(), zeros), lowest, sum));
    part = hn::IfThenElse(marked, mark(), sum);
    return hn::AllFalse(Wide(), marked);
  }

  // The lanes that are not settled. Their terms are not finite or did not fit, or rounding twice may have
  // produced a wrong result. The latter is possible if a number next to `lost` would have changed the sum. It
  // is impossible with two levels, which are added and rounded in one step.
  template <int kLevels>
  HWY_INLINE hn::Mask<Wide> unsettled(const Exponents& exponents, WideVec sum, WideVec lost) const {
    const Wide d;
    auto marked = hn::IsNaN(sum);
    if constexpr (kScansWide) {
      // Marks lanes for which even the highest level has no room.
      marked = hn::Or(marked, hn::RebindMask(d, hn::Gt(exponents.top, set(2044 - room_.carries()))));
    }
    if constexpr (kLevels == kMostLevels) {
      marked = hn::Or(marked, hn::RebindMask(d, hn::Gt(exponents.spread, set(room_.spread(kLevels)))));
    }
    if constexpr (kLevels > 2) {
      const auto beyond = hn::BitCast(d, hn::Add(hn::BitCast(WideBits(), lost), set(1)));
      const auto close = hn::Ne(hn::Add(sum, beyond), sum);
      marked = hn::Or(marked, hn::And(close, hn::Ne(lost, hn::Zero(d))));
    }
    return marked;
  }

  // A NaN with its sign bit set. No result is such a NaN.
  static HWY_INLINE WideVec mark() {
    return hn::BitCast(Wide(), hn::Set(WideBits(), static_cast<int64_t>(0xFFF8000000000000)));
  }

  HWY_INLINE WideVec finish(WideVec sum) const {
    if (args_.divisor != 1) sum = hn::Div(sum, hn::Set(Wide(), args_.divisor));
    const auto nan = hn::BitCast(Wide(), hn::Set(WideBits(), int64_t{0x7FF8000000000000}));
    return hn::IfThenElse(hn::IsNaN(sum), nan, sum);
  }

  // Stores a step that is not whole or has marked lanes. The marked lanes are summed here.
  HWY_NOINLINE void store_lanes(const hn::Vec<In>* result, std::size_t at, std::size_t n) const {
    using Bits = hwy::MakeUnsigned<T>;
    Lanes lanes;
    for (std::size_t v = 0; v < Format::kVectors; ++v) hn::Store(result[v], In(), lanes.at + v * kLanes);
    for (std::size_t j = 0; j < n; ++j) {
      if (std::bit_cast<Bits>(lanes.at[j]) < Format::kMark) continue;
      lanes.at[j] = std::bit_cast<T>(static_cast<Bits>(element_(args_, at + j)));
    }
    for (std::size_t d = 0; d < args_.num_dst; ++d) {
      std::memcpy(args_.dst[d] + at * sizeof(T), lanes.at, n * sizeof(T));
    }
  }

  static HWY_INLINE hn::Vec<WideBits> set(int value) { return hn::Set(WideBits(), int64_t{value}); }

  const ExactArguments& args_;
  ExactElement element_;
  Room room_;
};

template <class Format, bool kWeighted>
HWY_NOINLINE void exact_range(const ExactLoop<Format, kWeighted>& loop, std::size_t at, std::size_t end,
                              bool stream) {
  bool wide = Format::kBits == 53;
  while (at < end) {
    const std::size_t n = end - at < loop.kStep ? end - at : loop.kStep;
    loop.step(at, n, stream, wide);
    at += n;
  }
}

template <class Format, bool kWeighted>
void exact_elements(const ExactArguments& args, ExactElement element) {
  const ExactLoop<Format, kWeighted> loop(args, element);
  std::ptrdiff_t head = -1;
  if (args.stream) {
    head = lanes_before_line<hn::TFromD<typename Format::In> >(
        {args.src, args.dst, args.num_src, args.num_dst, args.count, args.divisor, args.stream}, args.count);
  }
  if (head < 0) return exact_range(loop, 0, args.count, false);
  const auto begin = static_cast<std::size_t>(head);
  exact_range(loop, 0, begin, false);
  exact_range(loop, begin, args.count, true);
  hwy::FlushStream();
}

template <class Format, dist_dtype kType>
void exact(const ExactArguments& args) noexcept {
  const ExactElement element = scalar_exact_element(kType);
  if (args.weights == nullptr)
    exact_elements<Format, false>(args, element);
  else
    exact_elements<WeightedLanes<Format>, true>(args, element);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace dist
HWY_AFTER_NAMESPACE();

#endif  // DIST_KERNEL_EXACT_INL_HPP
