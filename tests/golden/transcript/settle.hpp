// SPDX-License-Identifier: Apache-2.0
// Normalizes what several threads recorded, so that it is the same each time. Until then, objects are
// references that contain their number.
#pragma once

#include <string>
#include <vector>

#include "line.hpp"

namespace golden::transcript {

// Returns "@17@", which no literal contains.
std::string reference(std::size_t object);

// Drops getters of items that are not used. Moves values that several replicas share, and that one of them
// made, to before their run. Sorts concurrent callbacks. Names the objects, whose kinds are kinds_[number],
// in the order of their lines.
void settle(Line& root, const std::vector<char>& kinds);

}  // namespace golden::transcript
