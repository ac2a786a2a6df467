// SPDX-License-Identifier: Apache-2.0
// Python's int() and str() of what a JSON text or an environment variable holds: what TensorFlow makes of the
// types and indices of tasks. Integers have 32 bits here; Python's have any number.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/status.hpp"
#include "core/cluster/json.hpp"

namespace dist {

// int(text): blanks around it, a sign, digits, which single underscores may part. `what` begins messages.
Status int_of(std::string_view text, const char* what, int32_t* out) noexcept;

// int(value): texts as above, numbers without their fraction, true and false as 1 and 0.
Status int_of(const JsonTree::Value& value, const char* what, int32_t* out) noexcept;

// str(value), but of lists and objects, with an end mark: 3 is "3", null "None".
Status str_of(const JsonTree::Value& value, const char* what, char* out, std::size_t size) noexcept;

}  // namespace dist
