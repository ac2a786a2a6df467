// SPDX-License-Identifier: Apache-2.0
// Text for the output of dist-info: one line of UTF-8 without control characters, whatever the environment
// contains.
#pragma once

#include <string>
#include <string_view>

namespace dist::info {

// Replaces line breaks by spaces, and other control characters and invalid bytes as libdist does in its
// messages. A text longer than 2,000 bytes is truncated.
std::string one_line(std::string_view text);

// Each returns the message of the latest failure in this thread: api_error() that of libdist.so, and
// core_error() that of the copy of the core in dist-info.
std::string api_error();
std::string core_error();

// "1 worker", "2 workers".
std::string count_of(long long number, const char* noun);

}  // namespace dist::info
