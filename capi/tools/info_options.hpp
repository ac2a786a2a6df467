// SPDX-License-Identifier: Apache-2.0
// The command line of dist-info.
#pragma once

#include <cstdint>
#include <string>

namespace dist::info {

enum class Asked : uint8_t { kRun, kHelp, kVersion, kNonsense };

struct Options {
  Asked asked = Asked::kRun;
  bool check = false;
  bool json = false;
  std::string error;  // for kNonsense: the problem, without a newline
};

// Changes nothing but getopt's variables, and prints nothing.
Options parse_options(int argc, char** argv);

extern const char kHelp[];

}  // namespace dist::info
