// SPDX-License-Identifier: Apache-2.0
#include "core/value/number.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/kernel/convert.hpp"

namespace dist {
namespace {

template <class T>
T load(const void* element) noexcept {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

// Copies the text and returns the end of the copy, at which the next text can begin.
char* copy(const char* from, char* to) noexcept {
  const std::size_t length = std::strlen(from);
  std::memcpy(to, from, length);
  return to + length;
}

// The decimal exponent in a number that to_chars() has written in scientific form.
int exponent_of(const char* begin, const char* end) noexcept {
  const char* sign = end;
  while (sign > begin && sign[-1] != 'e') --sign;
  int exponent = 0;
  std::from_chars(*sign == '+' ? sign + 1 : sign, end, exponent);
  return exponent;
}

// Writes a decimal point if that is easy to read, otherwise an exponent: 100000 rather than 1e+05.
template <class Float>
char* write_finite(Float value, char* to, char* end) noexcept {
  constexpr int kMostDigits = sizeof(Float) == sizeof(double) ? 16 : 7;
  char* const last = std::to_chars(to, end, value, std::chars_format::scientific).ptr;
  const int exponent = exponent_of(to, last);
  if (exponent < -4 || exponent >= kMostDigits) return last;
  return std::to_chars(to, end, value, std::chars_format::fixed).ptr;
}

template <class Float>
char* write_float(Float value, char* to, char* end) noexcept {
  if (std::isnan(value)) return copy("nan", to);
  if (std::isinf(value)) return copy(value > 0 ? "inf" : "-inf", to);
  return write_finite(value, to, end);
}

// Writes a 16-bit number with the fewest digits that read back as the same bits. It needs fewer digits than
// the f32 of the same value.
template <float (*Widen)(uint16_t), uint16_t (*Narrow)(float)>
char* write_half(uint16_t bits, char* to, char* end) noexcept {
  const float value = Widen(bits);
  if (!std::isfinite(value)) return write_float(value, to, end);
  for (int digits = 0; digits < 9; ++digits) {
    char* const last = std::to_chars(to, end, value, std::chars_format::scientific, digits).ptr;
    float rounded = 0;
    std::from_chars(to, last, rounded);
    if (Narrow(rounded) == bits) return write_finite(rounded, to, end);
  }
  return write_finite(value, to, end);
}

template <class Integer>
char* write_integer(const void* element, char* to, char* end) noexcept {
  return std::to_chars(to, end, load<Integer>(element)).ptr;
}

char* write_complex(const void* element, char* to, char* end) noexcept {
  const auto parts = load<std::array<float, 2>>(element);
  to = write_float(parts[0], to, end);
  if (std::isnan(parts[1]) || !std::signbit(parts[1])) to = copy("+", to);
  to = write_float(parts[1], to, end);
  return copy("i", to);
}

}  // namespace

// @every dtype
void write_number(dist_dtype dtype, const void* element, char (&text)[kNumberRoom]) noexcept {
  char* const end = text + kNumberRoom - 1;
  char* last;
  switch (dtype) {
    case DIST_F16: last = write_half<f32_from_f16, f16_from_f32>(load<uint16_t>(element), text, end); break;
    case DIST_BF16:
      last = write_half<f32_from_bf16, bf16_from_f32>(load<uint16_t>(element), text, end);
      break;
    case DIST_F32: last = write_float(load<float>(element), text, end); break;
    case DIST_F64: last = write_float(load<double>(element), text, end); break;
    case DIST_I8: last = write_integer<int8_t>(element, text, end); break;
    case DIST_U8: last = write_integer<uint8_t>(element, text, end); break;
    case DIST_I16: last = write_integer<int16_t>(element, text, end); break;
    case DIST_U16: last = write_integer<uint16_t>(element, text, end); break;
    case DIST_I32: last = write_integer<int32_t>(element, text, end); break;
    case DIST_U32: last = write_integer<uint32_t>(element, text, end); break;
    case DIST_I64: last = write_integer<int64_t>(element, text, end); break;
    case DIST_U64: last = write_integer<uint64_t>(element, text, end); break;
    case DIST_COMPLEX64: last = write_complex(element, text, end); break;
    case DIST_BOOL: last = copy(load<uint8_t>(element) != 0 ? "true" : "false", text); break;
    default: last = copy("?", text);
  }
  *last = '\0';
}

}  // namespace dist
