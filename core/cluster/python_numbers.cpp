// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/python_numbers.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "core/base/text.hpp"

namespace dist {
namespace {

constexpr std::string_view kBlanks = " \t\n\r\f\v";

Status no_integer(std::string_view text, const char* what) noexcept {
  return invalid_argument("%s is \"%s\", but must be an integer of 32 bits", what, Shown(text).c_str());
}

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// A JSON number as read by Python: infinite or 0 if it exceeds the range of a double.
double double_of(std::string_view text) noexcept {
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{}) return number;
  if (text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos) return 0;
  return text.front() == '-' ? -HUGE_VAL : HUGE_VAL;
}

bool is_integer(std::string_view text) noexcept {
  return text.find_first_not_of("-0123456789") == std::string_view::npos;
}

// repr() of a float: the shortest digits that read back as the same number, with an exponent below -4 and
// from 16 on.
int write_float(double number, char* out, std::size_t size) noexcept {
  if (std::isnan(number)) return std::snprintf(out, size, "nan");
  if (std::isinf(number)) return std::snprintf(out, size, number < 0 ? "-inf" : "inf");
  char text[64];
  const char* const end = std::to_chars(text, text + sizeof text, number, std::chars_format::scientific).ptr;
  const char* const e = std::find(text, const_cast<char*>(end), 'e');
  int exponent = 0;
  std::from_chars(e[1] == '+' ? e + 2 : e + 1, end, exponent);
  if (exponent < -4 || exponent >= 16) {
    return std::snprintf(out, size, "%.*s", static_cast<int>(end - text), text);
  }
  const char* const fixed_end = std::to_chars(text, text + sizeof text, number, std::chars_format::fixed).ptr;
  const std::string_view fixed(text, static_cast<std::size_t>(fixed_end - text));
  const char* const point = fixed.find('.') == std::string_view::npos ? ".0" : "";
  return std::snprintf(out, size, "%.*s%s", static_cast<int>(fixed.size()), fixed.data(), point);
}

Status too_long(const char* what, std::size_t size) noexcept {
  return invalid_argument("%s is a text of more than %zu bytes", what, size - 1);
}

}  // namespace

Status int_of(std::string_view text, const char* what, int32_t* out) noexcept {
  std::string_view left = text;
  const std::size_t begin = left.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return no_integer(text, what);
  left.remove_prefix(begin);
  left.remove_suffix(left.size() - 1 - left.find_last_not_of(kBlanks));
  const bool minus = left.front() == '-';
  if (minus || left.front() == '+') left.remove_prefix(1);
  int64_t number = 0;
  bool after_digit = false;
  for (const char c : left) {
    if (c == '_' && after_digit) {
      after_digit = false;
      continue;
    }
    if (!is_digit(c)) return no_integer(text, what);
    after_digit = true;
    // A number that is too large stays too large; one more step cannot overflow 64 bits.
    if (number <= std::numeric_limits<int32_t>::max()) number = number * 10 + (c - '0');
  }
  if (!after_digit) return no_integer(text, what);
  number = minus ? -number : number;
  if (number != static_cast<int32_t>(number)) return no_integer(text, what);
  *out = static_cast<int32_t>(number);
  return kOk;
}

Status int_of(const JsonTree::Value& value, const char* what, int32_t* out) noexcept {
  switch (value.kind) {
    case JsonKind::kTrue: return *out = 1, kOk;
    case JsonKind::kFalse: return *out = 0, kOk;
    case JsonKind::kText: return int_of(value.text, what, out);
    case JsonKind::kNumber: break;
    default:
      return invalid_argument("%s is %s, but must be an integer of 32 bits", what, name_of(value.kind));
  }
  if (is_integer(value.text)) return int_of(value.text, what, out);
  const double number = std::trunc(double_of(value.text));
  if (!(number >= std::numeric_limits<int32_t>::min() && number <= std::numeric_limits<int32_t>::max())) {
    return no_integer(value.text, what);
  }
  *out = static_cast<int32_t>(number);
  return kOk;
}

Status str_of(const JsonTree::Value& value, const char* what, char* out, std::size_t size) noexcept {
  std::string_view text = value.text;
  char number[64];
  switch (value.kind) {
    case JsonKind::kNull: text = "None"; break;
    case JsonKind::kTrue: text = "True"; break;
    case JsonKind::kFalse: text = "False"; break;
    case JsonKind::kText: break;
    case JsonKind::kNumber:
      if (text == "-0") {
        text = "0";
      } else if (!is_integer(text)) {
        text = {number, static_cast<std::size_t>(write_float(double_of(text), number, sizeof number))};
      }
      break;
    default: return invalid_argument("%s is %s, but must be a string", what, name_of(value.kind));
  }
  if (text.size() >= size) return too_long(what, size);
  if (text.find('\0') != std::string_view::npos) return invalid_argument("%s has a NUL inside", what);
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return check_name(out, what);
}

}  // namespace dist
