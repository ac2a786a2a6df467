// SPDX-License-Identifier: Apache-2.0
#include "capi/tools/info_text.hpp"

#include <dist/error.h>

#include <algorithm>

#include "core/base/status.hpp"
#include "core/base/text.hpp"

namespace dist::info {

std::string one_line(std::string_view text) {
  constexpr std::size_t kMost = 2000;
  std::string given(text.substr(0, kMost));
  std::replace(given.begin(), given.end(), '\n', ' ');
  std::string safe;
  for (std::size_t at = 0; at < given.size() && given[at] != '\0';) {
    char shown[kShownRoom] = "";
    at += show_character(given.c_str() + at, Keep::kNothing, shown);
    safe += shown;
  }
  if (text.size() > kMost) safe += "...";
  return safe;
}

std::string api_error() { return one_line(dist_last_error()); }

std::string core_error() {
  char plain[sizeof(ErrorRecord::message)];
  copy_plain(plain, last_error().message);
  return one_line(plain);
}

std::string count_of(long long number, const char* noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

}  // namespace dist::info
