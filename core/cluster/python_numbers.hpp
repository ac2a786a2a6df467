// SPDX-License-Identifier: Apache-2.0
// Python's int() and str() of values in JSON texts and environment variables, which is how TensorFlow reads
// task types and indices. Integers have 32 bits here, while Python's are unlimited.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/status.hpp"
#include "core/cluster/json.hpp"

namespace dist {

// int(text): optional surrounding blanks and a sign, then digits, which single underscores may separate.
// `what` begins messages.
Status int_of(std::string_view text, const char* what, int32_t* out) noexcept;

// int(value): texts as above, numbers without their fraction, true and false as 1 and 0.
Status int_of(const JsonTree::Value& value, const char* what, int32_t* out) noexcept;

// str(value) with a NUL, except for lists and objects: 3 gives "3", null gives "None".
Status str_of(const JsonTree::Value& value, const char* what, char* out, std::size_t size) noexcept;

}  // namespace dist
