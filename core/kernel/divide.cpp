// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/divide.hpp"

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/kernel/convert.hpp"

namespace dist {
namespace {

template <class T>
T load(const std::byte* data, std::size_t i) noexcept {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof value);
  return value;
}

template <class T>
void store(std::byte* data, std::size_t i, T value) noexcept {
  std::memcpy(data + i * sizeof(T), &value, sizeof value);
}

struct Complex {
  float re;
  float im;
};

// Computes in f64, in which products of f32 are exact and their sums do not overflow.
Complex quotient(Complex a, Complex b) noexcept {
  const double re = b.re;
  const double im = b.im;
  const double square = re * re + im * im;
  return {static_cast<float>((a.re * re + a.im * im) / square),
          static_cast<float>((a.im * re - a.re * im) / square)};
}

template <class T>
T quotient(T a, T b) noexcept {
  // INT_MIN / -1 is the only quotient that is out of range. It wraps, as sums do.
  if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    if (b == -1) return static_cast<T>(static_cast<Unsigned>(Unsigned{0} - static_cast<Unsigned>(a)));
  }
  return static_cast<T>(a / b);
}

template <class T>
void divide_all(const std::byte* a, const std::byte* b, std::byte* to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) store(to, i, quotient(load<T>(a, i), load<T>(b, i)));
}

template <float (*widen)(uint16_t), uint16_t (*narrow)(float)>
void divide_narrow(const std::byte* a, const std::byte* b, std::byte* to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    store(to, i, narrow(widen(load<uint16_t>(a, i)) / widen(load<uint16_t>(b, i))));
  }
}

// Calls body(T()) with the integer type of `dtype`, if it is one.
template <class Body>
void with_integer(dist_dtype dtype, Body&& body) noexcept {
  switch (dtype) {
    case DIST_I8: return body(int8_t{});
    case DIST_U8: return body(uint8_t{});
    case DIST_I16: return body(int16_t{});
    case DIST_U16: return body(uint16_t{});
    case DIST_I32: return body(int32_t{});
    case DIST_U32: return body(uint32_t{});
    case DIST_I64: return body(int64_t{});
    case DIST_U64: return body(uint64_t{});
    default: return;
  }
}

}  // namespace

void divide(dist_dtype dtype, const std::byte* a, const std::byte* b, std::byte* to,
            std::size_t count) noexcept {
  switch (dtype) {
    case DIST_F16: return divide_narrow<f32_from_f16, f16_from_f32>(a, b, to, count);
    case DIST_BF16: return divide_narrow<f32_from_bf16, bf16_from_f32>(a, b, to, count);
    case DIST_F32: return divide_all<float>(a, b, to, count);
    case DIST_F64: return divide_all<double>(a, b, to, count);
    case DIST_COMPLEX64: return divide_all<Complex>(a, b, to, count);
    default: return with_integer(dtype, [&](auto zero) { divide_all<decltype(zero)>(a, b, to, count); });
  }
}

bool holds_zero_integer(dist_dtype dtype, const std::byte* data, std::size_t count) noexcept {
  bool found = false;
  with_integer(dtype, [&](auto zero) {
    for (std::size_t i = 0; i < count && !found; ++i) found = load<decltype(zero)>(data, i) == zero;
  });
  return found;
}

void share_integers(dist_dtype dtype, const std::byte* whole, int part, int parts, std::byte* to,
                    std::size_t count) noexcept {
  with_integer(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < count; ++i) {
      // The computation uses a wide type, since the number of parts may be outside of T's range.
      using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      const Wide value{load<T>(whole, i)};
      const auto n = static_cast<Wide>(parts);
      const auto rest = static_cast<Wide>(value % n);
      const bool negative = value < Wide{0};
      const auto more = static_cast<int>(negative ? Wide{0} - rest : rest);
      const auto one = static_cast<Wide>(part < more ? 1 : 0);
      store(to, i, static_cast<T>(negative ? value / n - one : value / n + one));
    }
  });
}

}  // namespace dist
