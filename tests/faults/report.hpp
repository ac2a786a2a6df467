// SPDX-License-Identifier: Apache-2.0
// The matrix as a table and as a file.
#pragma once

#include <cstdio>
#include <string>

#include "tests/faults/matrix.hpp"

namespace faults {

// Plays all faults and prints a line a class as it goes. Whether all is well.
bool report(const Options& options, const std::string& json_path);

}  // namespace faults
