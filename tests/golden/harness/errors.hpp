// SPDX-License-Identifier: Apache-2.0
// Maps exceptions of the recorded program to statuses of libdist. Error messages are not compared.
#pragma once

#include <dist/types.h>

#include <string_view>

#include "json.hpp"

namespace golden {

// Whether a status says what an exception class does. A class that the table has not throws Unknown.
bool same_kind(std::string_view exception, dist_status status);

// Whether `json` is an error of ours (Replay::encode_error()), and of which status.
bool is_error(const Json& json, dist_status* out_status);

// The class of a recorded exception, in any of its forms: {"type": ...}, {"kind": "error", "error": {...}},
// or the bare name; "" where it is no exception.
std::string_view exception_of(const Json& json);

}  // namespace golden
