// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/integers.hpp"

#include <charconv>

#include "core/base/text.hpp"

namespace dist {

Status int_of(std::string_view text, const char* what, int32_t* out) noexcept {
  const char* const end = text.data() + text.size();
  int32_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc{} && stop == end) return *out = number, kOk;
  return invalid_argument("%s is \"%s\", but must be an integer of 32 bits", what, Shown(text).c_str());
}

Status int_of(const JsonTree::Value& value, const char* what, int32_t* out) noexcept {
  if (value.kind == JsonKind::kText || value.kind == JsonKind::kNumber) return int_of(value.text, what, out);
  return invalid_argument("%s is %s, but must be an integer of 32 bits", what, name_of(value.kind));
}

}  // namespace dist
