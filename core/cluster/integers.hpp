// SPDX-License-Identifier: Apache-2.0
// Integers in JSON texts and environment variables.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/status.hpp"
#include "core/cluster/json.hpp"

namespace dist {

// Parses decimal digits after an optional minus sign, as a 32-bit number. `what` is the beginning of
// messages.
Status int_of(std::string_view text, const char* what, int32_t* out) noexcept;

// Parses such a number, or a text that contains one.
Status int_of(const JsonTree::Value& value, const char* what, int32_t* out) noexcept;

}  // namespace dist
