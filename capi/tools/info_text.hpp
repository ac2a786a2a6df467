// SPDX-License-Identifier: Apache-2.0
// Text for the output of dist-info: one line of UTF-8 without control characters, whatever the environment contains.
#pragma once

#include <string>
#include <string_view>

namespace dist::info {

// Replaces line breaks by spaces, and other control characters and invalid bytes as libdist does in its messages. A
// text longer than 2,000 bytes is truncated.
std::string one_line(std::string_view text);

// The message of this thread's latest failure: in libdist.so, and in the copy of the core that dist-info contains.
std::string api_error();
std::string core_error();

// "1 worker", "2 workers".
std::string count_of(long long number, const char* noun);

}  // namespace dist::info
