// SPDX-License-Identifier: Apache-2.0
// Normalizes what several threads recorded, so that it is the same each time. Until then, objects are
// references that contain their number.
#pragma once

#include <string>
#include <vector>

#include "line.hpp"

namespace golden::transcript {

// "@17@", which no literal has.
std::string reference(std::size_t object);

// Leaves out getters of items that nobody uses; moves values that several replicas share, and whichever came
// first made, to before their run; sorts what ran at the same time; and names the objects, of kinds_[number],
// in the order of their lines.
void settle(Line& root, const std::vector<char>& kinds);

}  // namespace golden::transcript
