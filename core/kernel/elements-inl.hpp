// SPDX-License-Identifier: Apache-2.0
// Defines how a kernel loads, folds and stores elements. Compiled once for each SIMD target. An element class
// has
//
//     In, Out      tags of the lanes in memory; both have the same number of lanes, and Out is a full vector
//     Value        what is folded: one or two vectors
//     kLanes       lanes in memory per element (complex64: 2)
//     load(from)   loads a Value of full In vectors; widen(raw) makes it from a vector in a register
//     apply(a, b)  one step of the fold
//     finish(v)    the Out vector to store
#include "core/kernel/ops-inl.hpp"
#include "core/kernel/reduce.hpp"
#include "hwy/highway.h"

#if defined(DIST_KERNEL_ELEMENTS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef DIST_KERNEL_ELEMENTS_INL_HPP
#undef DIST_KERNEL_ELEMENTS_INL_HPP
#else
#define DIST_KERNEL_ELEMENTS_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace dist {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Divides by the divisor for a MEAN. Other operators leave the value as it is.
template <class D, class Op, bool kDivides = Op::kDivides>
struct Division {
  explicit Division(const ReduceArguments&) {}
  HWY_INLINE hn::Vec<D> operator()(hn::Vec<D> value) const { return value; }
};

template <class D, class Op>
struct Division<D, Op, true> {
  explicit HWY_INLINE Division(const ReduceArguments& args)
      : divisor(hn::Set(D(), static_cast<hn::TFromD<D>>(args.divisor))) {}
  HWY_INLINE hn::Vec<D> operator()(hn::Vec<D> value) const { return hn::Div(value, divisor); }
  hn::Vec<D> divisor;
};

// Lanes that are folded in the type in which they are stored.
template <class T, class Op, std::size_t kLanesPerElement = 1>
struct Plain {
  using In = hn::ScalableTag<T>;
  using Out = In;
  using Value = hn::Vec<In>;
  static constexpr std::size_t kLanes = kLanesPerElement;

  explicit HWY_INLINE Plain(const ReduceArguments& args) : division(args) {}
  static HWY_INLINE Value load(const T* from) { return hn::LoadU(In(), from); }
  static HWY_INLINE Value widen(Value raw) { return raw; }
  static HWY_INLINE Value apply(Value a, Value b) { return Op::apply(a, b); }
  HWY_INLINE Value finish(Value value) const { return division(value); }

  Division<In, Op> division;
};

template <class Op>
struct Bool : Plain<uint8_t, Op> {
  using Base = Plain<uint8_t, Op>;
  using typename Base::In;
  using typename Base::Value;
  explicit HWY_INLINE Bool(const ReduceArguments& args) : Base(args) {}
  static HWY_INLINE Value load(const uint8_t* from) { return widen(Base::load(from)); }
  static HWY_INLINE Value widen(Value raw) { return hn::Min(raw, hn::Set(In(), uint8_t{1})); }
};

// 16-bit floats, folded in f32: a full vector in memory is two of f32.
template <class Format, class Op>
struct Narrow {
  using In = hn::ScalableTag<uint16_t>;
  using Out = In;
  using Value = typename Format::Wide;
  static constexpr std::size_t kLanes = 1;

  explicit HWY_INLINE Narrow(const ReduceArguments& args) : division(args) {}
  static HWY_INLINE Value load(const uint16_t* from) { return Format::load(from); }
  static HWY_INLINE Value widen(hn::Vec<In> raw) { return Format::widen(raw); }
  static HWY_INLINE Value apply(Value a, Value b) {
    return {Op::apply(a.first, b.first), Op::apply(a.second, b.second)};
  }
  HWY_INLINE hn::Vec<Out> finish(Value value) const {
    return Format::narrow({division(value.first), division(value.second)});
  }

  Division<hn::ScalableTag<float>, Op> division;
};

struct WideFloats {
  hn::Vec<hn::ScalableTag<float>> first;
  hn::Vec<hn::ScalableTag<float>> second;
};

// first and second hold the even and the odd lanes. An f32 is a bf16 with 16 more bits below it, so that
// widening takes one operation for each, and no lane moves.
struct Bf16 {
  using Wide = WideFloats;
  using D16 = hn::ScalableTag<uint16_t>;
  using D32 = hn::ScalableTag<uint32_t>;
  using Df = hn::ScalableTag<float>;

  static HWY_INLINE Wide load(const uint16_t* from) { return widen(hn::LoadU(D16(), from)); }
  static HWY_INLINE Wide widen(hn::Vec<D16> raw) {
    const auto pairs = hn::BitCast(D32(), raw);
    return {hn::BitCast(Df(), hn::ShiftLeft<16>(pairs)), hn::BitCast(Df(), hn::And(pairs, upper()))};
  }
  static HWY_INLINE hn::Vec<D16> narrow(Wide wide) {
    const auto even = hn::ShiftRight<16>(rounded(wide.first));
    const auto odd = hn::And(rounded(wide.second), upper());
    return hn::BitCast(D16(), hn::Or(even, odd));
  }

 private:
  static HWY_INLINE hn::Vec<D32> upper() { return hn::Set(D32(), 0xFFFF0000u); }
  // Rounds to nearest even in the upper 16 bits. A NaN is made quiet instead, because a carry could turn it
  // into infinity.
  static HWY_INLINE hn::Vec<D32> rounded(hn::Vec<Df> value) {
    const auto bits = hn::BitCast(D32(), value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(D32(), 1u));
    const auto nearest = hn::Add(bits, hn::Add(odd, hn::Set(D32(), 0x7FFFu)));
    const auto quiet = hn::Or(bits, hn::Set(D32(), 0x00400000u));
    return hn::IfThenElse(hn::RebindMask(D32(), hn::IsNaN(value)), quiet, nearest);
  }
};

// first and second hold the lower and the upper half of the lanes.
struct F16 {
  using Wide = WideFloats;
  using D16 = hn::ScalableTag<uint16_t>;
  using Df = hn::ScalableTag<float>;
  using Di = hn::RebindToSigned<Df>;
  using Dh = hn::Half<D16>;  // as many 16-bit lanes as Df has

  static HWY_INLINE Wide load(const uint16_t* from) {
    return {to_f32(hn::LoadU(Dh(), from)), to_f32(hn::LoadU(Dh(), from + hn::MaxLanes(Dh())))};
  }
  static HWY_INLINE Wide widen(hn::Vec<D16> raw) {
    return {to_f32(hn::LowerHalf(Dh(), raw)), to_f32(hn::UpperHalf(Dh(), raw))};
  }
  static HWY_INLINE hn::Vec<D16> narrow(Wide wide) {
    return hn::Combine(D16(), from_f32(wide.second), from_f32(wide.first));
  }

 private:
#if HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2)
  // The CPU's conversion rounds to nearest even and makes NaNs quiet, and ignores MXCSR's subnormal flags.
  using Dn = hn::Rebind<hwy::float16_t, Df>;
  static HWY_INLINE hn::Vec<Df> to_f32(hn::Vec<Dh> raw) {
    return hn::PromoteTo(Df(), hn::BitCast(Dn(), raw));
  }
  static HWY_INLINE hn::Vec<Dh> from_f32(hn::Vec<Df> value) {
    return hn::BitCast(Dh(), hn::DemoteTo(Dn(), value));
  }
#else
  // The branches of convert.hpp as selections. Lanes are signed because SSE only compares signed ones, which
  // is correct because magnitudes have no sign bit.
  static HWY_INLINE hn::Vec<Di> set(int32_t value) { return hn::Set(Di(), value); }
  static HWY_INLINE hn::Vec<Df> to_f32(hn::Vec<Dh> raw) {
    const auto bits = hn::PromoteTo(Di(), raw);
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, set(0x8000)));
    const auto magnitude = hn::And(bits, set(0x7FFF));
    const auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), set(112 << 23));
    // The exponent is raised once more, to that of infinities and NaNs; NaNs become quiet.
    const auto infinite = hn::Add(normal, set(112 << 23));
    const auto quiet = hn::Or(infinite, set(0x00400000));
    const auto subnormal =
        hn::BitCast(Di(), hn::Mul(hn::ConvertTo(Df(), magnitude), hn::Set(Df(), 0x1p-24f)));
    auto wide = hn::IfThenElse(hn::Lt(magnitude, set(0x0400)), subnormal, normal);
    wide = hn::IfThenElse(hn::Eq(magnitude, set(0x7C00)), infinite, wide);
    wide = hn::IfThenElse(hn::Gt(magnitude, set(0x7C00)), quiet, wide);
    return hn::BitCast(Df(), hn::Or(sign, wide));
  }
  static HWY_INLINE hn::Vec<Dh> from_f32(hn::Vec<Df> value) {
    const auto bits = hn::BitCast(Di(), value);
    const auto magnitude = hn::And(bits, set(0x7FFFFFFF));
    const auto sign = hn::And(hn::ShiftRight<16>(bits), set(0x8000));
    const auto rebased = hn::Sub(magnitude, set(112 << 23));
    const auto odd = hn::And(hn::ShiftRight<13>(rebased), set(1));
    const auto normal = hn::ShiftRight<13>(hn::Add(rebased, hn::Add(odd, set(0x0FFF))));
    // Adding 0.5 rounds to f16's subnormals: the sum's last place is 2^-24, which is their unit.
    const auto half = hn::Set(Df(), 0.5f);
    const auto shifted = hn::Add(hn::BitCast(Df(), magnitude), half);
    const auto subnormal = hn::Sub(hn::BitCast(Di(), shifted), hn::BitCast(Di(), half));
    const auto quiet = hn::Or(set(0x7E00), hn::And(hn::ShiftRight<13>(magnitude), set(0x03FF)));
    auto narrow = hn::IfThenElse(hn::Lt(magnitude, set(0x38800000)), subnormal, normal);
    narrow = hn::IfThenElse(hn::Gt(magnitude, set(0x477FFFFF)), set(0x7C00), narrow);  // 2^16 and up
    narrow = hn::IfThenElse(hn::Gt(magnitude, set(0x7F800000)), quiet, narrow);
    return hn::DemoteTo(Dh(), hn::Or(sign, narrow));
  }
#endif
};

// Converts unsigned integers to f64 and rounds once. The upper and lower halves become mantissas of doubles:
// 2^84 + upper * 2^32, and 2^52 + lower. `biases` is subtracted from the first, which is exact. It is 2^84 +
// 2^52, plus any further number that is to be subtracted from the integer.
HWY_INLINE hn::Vec<hn::ScalableTag<double>> f64_from_u64(hn::Vec<hn::ScalableTag<uint64_t>> value,
                                                         double biases) {
  const hn::ScalableTag<uint64_t> d64;
  const hn::ScalableTag<double> df;
  const auto upper = hn::Or(hn::ShiftRight<32>(value), hn::Set(d64, uint64_t{0x4530000000000000}));
  const auto lower =
      hn::Or(hn::And(value, hn::Set(d64, uint64_t{0xFFFFFFFF})), hn::Set(d64, uint64_t{0x4330000000000000}));
  return hn::Add(hn::Sub(hn::BitCast(df, upper), hn::Set(df, biases)), hn::BitCast(df, lower));
}

// Integers are summed in their own type, in which they wrap, then converted to f32 or f64 and divided there.
template <class T, class R>
struct IntegerMean {
  using Out = hn::ScalableTag<R>;
  using In = hn::Rebind<T, Out>;
  using Value = hn::Vec<In>;
  static constexpr std::size_t kLanes = 1;

  explicit HWY_INLINE IntegerMean(const ReduceArguments& args) : division(args) {}
  static HWY_INLINE Value load(const T* from) { return hn::LoadU(In(), from); }
  static HWY_INLINE Value widen(Value raw) { return raw; }
  static HWY_INLINE Value apply(Value a, Value b) { return hn::Add(a, b); }
  HWY_INLINE hn::Vec<Out> finish(Value value) const { return division(convert(value)); }

  Division<Out, Mean> division;

 private:
  static HWY_INLINE hn::Vec<Out> convert(Value value) {
    if constexpr (sizeof(T) <= 2) {
      return hn::ConvertTo(Out(), hn::PromoteTo(hn::Rebind<int32_t, Out>(), value));
    } else if constexpr (hwy::IsSame<T, int32_t>()) {
      return hn::PromoteTo(Out(), value);
    } else if constexpr (hwy::IsSame<T, uint32_t>()) {
      return f64_from_u64(hn::PromoteTo(hn::Rebind<uint64_t, Out>(), value), 0x1p84 + 0x1p52);
    } else if constexpr (hwy::IsSame<T, int64_t>()) {
      // With their sign bit flipped, the lanes are unsigned and 2^63 too large.
      const hn::Rebind<uint64_t, Out> d64;
      const auto biased = hn::Xor(hn::BitCast(d64, value), hn::Set(d64, uint64_t{1} << 63));
      return f64_from_u64(biased, 0x1p84 + 0x1p63 + 0x1p52);
    } else {
      return f64_from_u64(value, 0x1p84 + 0x1p52);
    }
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace dist
HWY_AFTER_NAMESPACE();

#endif  // DIST_KERNEL_ELEMENTS_INL_HPP
