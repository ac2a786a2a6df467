// SPDX-License-Identifier: Apache-2.0
// The calls that a player can execute, by name.
#pragma once

#include <string_view>

#include "line.hpp"

namespace golden::transcript {

class Player;
using Perform = void (*)(Player& player, const Line& line);

// Returns nullptr if there is no such function.
const Perform* find_call(std::string_view name) noexcept;

}  // namespace golden::transcript
