// SPDX-License-Identifier: Apache-2.0
// Operators on vectors, compiled once for each SIMD target.
//
// Invariant: in each lane, an operator produces the same bits as the operator of that name in
// reduce_scalar.cpp.
#include "hwy/highway.h"

#if defined(DIST_KERNEL_OPS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef DIST_KERNEL_OPS_INL_HPP
#undef DIST_KERNEL_OPS_INL_HPP
#else
#define DIST_KERNEL_OPS_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace dist {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

struct Sum {
  static constexpr bool kDivides = false;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Add(a, b);
  }
};

// A sum. finish() divides it.
struct Mean : Sum {
  static constexpr bool kDivides = true;
};

// In lanes in which a or b is NaN, returns their sum, which is a quiet NaN; in the other lanes, `otherwise`.
template <class V>
HWY_INLINE V nan_if_any_is(V a, V b, V otherwise) {
  return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::Add(a, b), otherwise);
}

struct Minimum {
  static constexpr bool kDivides = false;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      // For two zeros, x86 returns the second operand. So the results of both orders are combined: the sign
      // bit is set if either zero has it.
      return nan_if_any_is(a, b, hn::Or(hn::Min(a, b), hn::Min(b, a)));
    } else {
      return hn::Min(a, b);
    }
  }
};

struct Maximum {
  static constexpr bool kDivides = false;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return nan_if_any_is(a, b, hn::And(hn::Max(a, b), hn::Max(b, a)));
    } else {
      return hn::Max(a, b);
    }
  }
};

struct Product {
  static constexpr bool kDivides = false;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (sizeof(hn::TFromV<V>) == 1) {
      // No CPU multiplies bytes. Even bytes are multiplied as the low halves of 16-bit lanes; odd ones are
      // moved down before, and the product is moved up.
      const hn::Repartition<uint16_t, hn::DFromV<V>> d16;
      const auto a16 = hn::BitCast(d16, a);
      const auto b16 = hn::BitCast(d16, b);
      const auto low = hn::Set(d16, uint16_t{0x00FF});
      const auto even = hn::And(hn::Mul(a16, b16), low);
      const auto odd = hn::Mul(hn::ShiftRight<8>(a16), hn::AndNot(low, b16));
      return hn::BitCast(hn::DFromV<V>(), hn::Or(even, odd));
    } else {
      return hn::Mul(a, b);
    }
  }
};

// (re, im) pairs in neighbouring lanes: (ac - bd, ad + bc), each product rounded before they are added.
struct ComplexProduct {
  static constexpr bool kDivides = false;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    const hn::DFromV<V> d;
    const auto straight = hn::Mul(hn::DupEven(a), b);                 // ac, ad
    const auto crossed = hn::Mul(hn::DupOdd(a), hn::Reverse2(d, b));  // bd, bc
    return hn::OddEven(hn::Add(straight, crossed), hn::Sub(straight, crossed));
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace dist
HWY_AFTER_NAMESPACE();

#endif  // DIST_KERNEL_OPS_INL_HPP
