// SPDX-License-Identifier: Apache-2.0
// Maps exceptions of the recorded program to statuses of libdist. Error messages are not compared.
#pragma once

#include <dist/types.h>

#include <string_view>

#include "json.hpp"

namespace golden {

// Whether a status corresponds to an exception class. Throws Unknown for a class that is not in the table.
bool same_kind(std::string_view exception, dist_status status);

// Whether `json` is an error made by Replay::encode_error(), and its status.
bool is_error(const Json& json, dist_status* out_status);

// Returns the class of a recorded exception in any of its forms: {"type": ...}, {"kind": "error", "error":
// {...}}, or the name alone. Returns "" if it is not an exception.
std::string_view exception_of(const Json& json);

}  // namespace golden
