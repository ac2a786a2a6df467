// SPDX-License-Identifier: Apache-2.0
// Makes of what was recorded, on several threads, what is the same each time. Until then an object is a
// reference with its number in it.
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
