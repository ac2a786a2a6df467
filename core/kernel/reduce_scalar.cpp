// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/reduce_scalar.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/kernel/convert.hpp"

namespace dist {
namespace {

// ---- Elements: how an element is read, folded and written. Buffers need no alignment: bytes are copied. ---

template <class T>
struct Number {
  using Source = T;
  using Result = T;
  static T read(T stored) { return stored; }
  static T write(T value) { return value; }
};

struct Half {
  using Source = uint16_t;
  using Result = uint16_t;
  static float read(uint16_t stored) { return f32_from_f16(stored); }
  static uint16_t write(float value) { return f16_from_f32(value); }
};

struct BrainFloat {
  using Source = uint16_t;
  using Result = uint16_t;
  static float read(uint16_t stored) { return f32_from_bf16(stored); }
  static uint16_t write(float value) { return bf16_from_f32(value); }
};

struct Boolean {
  using Source = uint8_t;
  using Result = uint8_t;
  static uint8_t read(uint8_t stored) { return stored != 0; }
  static uint8_t write(uint8_t value) { return value; }
};

struct Complex {
  float re;
  float im;
};

// ---- Operators ----

// Integers wrap: unsigned 64-bit arithmetic, cut to the type, is defined for all of them.
struct Sum {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else
      return a + b;
  }
  static Complex apply(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
};

struct Product {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  }
  // Not std::complex, whose operator gives other results for infinities.
  static Complex apply(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};

// IEEE 754-2019 minimum and maximum.
struct Minimum {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) || std::isnan(b)) return a + b;
      if (a == b) return std::signbit(a) ? a : b;
    }
    return a < b ? a : b;
  }
};

struct Maximum {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) || std::isnan(b)) return a + b;
      if (a == b) return std::signbit(a) ? b : a;
    }
    return a > b ? a : b;
  }
};

// ---- Finishing ----

template <class Element>
struct Store {
  using Result = typename Element::Result;
  template <class V>
  static Result finish(V value, double) {
    return Element::write(value);
  }
};

template <class Element>
struct DivideAndStore {
  using Result = typename Element::Result;
  template <class V>
  static Result finish(V value, double divisor) {
    return Element::write(value / static_cast<V>(divisor));
  }
};

template <>
struct DivideAndStore<Number<Complex>> {
  using Result = Complex;
  static Complex finish(Complex value, double divisor) {
    const auto by = static_cast<float>(divisor);
    return {value.re / by, value.im / by};
  }
};

// An integer's mean: the wrapped sum, converted, then divided.
template <class R>
struct DivideAs {
  using Result = R;
  template <class V>
  static R finish(V value, double divisor) {
    return static_cast<R>(value) / static_cast<R>(divisor);
  }
};

// ---- The kernel ----

struct FromLeftToRight {
  template <class Op, class Read>
  static auto fold(const Read& read, std::size_t num_src) {
    auto acc = read(0);
    for (std::size_t p = 1; p < num_src; ++p) acc = Op::apply(acc, read(p));
    return acc;
  }
};

struct AsTree {
  template <class Op, class Read>
  static auto fold(const Read& read, std::size_t num_src) {
    return part<Op>(read, 0, num_src);
  }
  // T(first, n) of tree.hpp.
  template <class Op, class Read>
  static auto part(const Read& read, std::size_t first, std::size_t n) -> decltype(read(first)) {
    if (n == 1) return read(first);
    const std::size_t left = std::bit_floor(n - 1);
    return Op::apply(part<Op>(read, first, left), part<Op>(read, first + left, n - left));
  }
};

template <class Order, class Element, class Op, class Finish>
void reduce(const ReduceArguments& args) noexcept {
  using Source = typename Element::Source;
  using Result = typename Finish::Result;
  for (std::size_t i = 0; i < args.count; ++i) {
    const auto read = [&args, i](std::size_t p) {
      Source stored;
      std::memcpy(&stored, args.src[p] + i * sizeof stored, sizeof stored);
      return Element::read(stored);
    };
    const Result result = Finish::finish(Order::template fold<Op>(read, args.num_src), args.divisor);
    for (std::size_t d = 0; d < args.num_dst; ++d) {
      std::memcpy(args.dst[d] + i * sizeof result, &result, sizeof result);
    }
  }
}

template <class Order, class Element, class Mean>
ReduceKernel number_kernel(dist_reduce_op op) noexcept {
  switch (op) {
    case DIST_REDUCE_SUM: return reduce<Order, Element, Sum, Store<Element>>;
    case DIST_REDUCE_MEAN: return reduce<Order, Element, Sum, Mean>;
    case DIST_REDUCE_MIN: return reduce<Order, Element, Minimum, Store<Element>>;
    case DIST_REDUCE_MAX: return reduce<Order, Element, Maximum, Store<Element>>;
    case DIST_REDUCE_PROD: return reduce<Order, Element, Product, Store<Element>>;
    default: return nullptr;
  }
}

template <class Order, class Element>
ReduceKernel float_kernel(dist_reduce_op op) noexcept {
  return number_kernel<Order, Element, DivideAndStore<Element>>(op);
}

template <class T>
ReduceKernel integer_kernel(dist_reduce_op op) noexcept {
  using Mean = DivideAs<std::conditional_t<sizeof(T) >= 4, double, float>>;
  return number_kernel<FromLeftToRight, Number<T>, Mean>(op);
}

template <class Order>
ReduceKernel complex_kernel(dist_reduce_op op) noexcept {
  using Element = Number<Complex>;
  switch (op) {
    case DIST_REDUCE_SUM: return reduce<Order, Element, Sum, Store<Element>>;
    case DIST_REDUCE_MEAN: return reduce<Order, Element, Sum, DivideAndStore<Element>>;
    case DIST_REDUCE_PROD: return reduce<Order, Element, Product, Store<Element>>;
    default: return nullptr;
  }
}

ReduceKernel bool_kernel(dist_reduce_op op) noexcept {
  switch (op) {
    case DIST_REDUCE_MIN: return reduce<FromLeftToRight, Boolean, Minimum, Store<Boolean>>;
    case DIST_REDUCE_MAX: return reduce<FromLeftToRight, Boolean, Maximum, Store<Boolean>>;
    default: return nullptr;
  }
}

template <class Order>
ReduceKernel floating_kernel(dist_dtype dtype, dist_reduce_op op) noexcept {
  switch (dtype) {
    case DIST_F16: return float_kernel<Order, Half>(op);
    case DIST_BF16: return float_kernel<Order, BrainFloat>(op);
    case DIST_F32: return float_kernel<Order, Number<float>>(op);
    case DIST_F64: return float_kernel<Order, Number<double>>(op);
    case DIST_COMPLEX64: return complex_kernel<Order>(op);
    default: return nullptr;
  }
}

}  // namespace

// @every dtype
ReduceKernel scalar_reduce_kernel(dist_dtype dtype, dist_reduce_op op) noexcept {
  switch (dtype) {
    case DIST_F16:
    case DIST_BF16:
    case DIST_F32:
    case DIST_F64:
    case DIST_COMPLEX64: return floating_kernel<FromLeftToRight>(dtype, op);
    case DIST_I8: return integer_kernel<int8_t>(op);
    case DIST_U8: return integer_kernel<uint8_t>(op);
    case DIST_I16: return integer_kernel<int16_t>(op);
    case DIST_U16: return integer_kernel<uint16_t>(op);
    case DIST_I32: return integer_kernel<int32_t>(op);
    case DIST_U32: return integer_kernel<uint32_t>(op);
    case DIST_I64: return integer_kernel<int64_t>(op);
    case DIST_U64: return integer_kernel<uint64_t>(op);
    case DIST_BOOL: return bool_kernel(op);
    default: return nullptr;
  }
}

ReduceKernel scalar_tree_kernel(dist_dtype dtype, dist_reduce_op op) noexcept {
  return floating_kernel<AsTree>(dtype, op);
}

}  // namespace dist
