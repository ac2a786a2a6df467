// SPDX-License-Identifier: Apache-2.0
// Which areas there are, and who replays them.
#pragma once

#include <span>
#include <string_view>

#include "play.hpp"

namespace golden {

struct Replayed {
  std::string_view area;
  ReplayFn replay;           // NULL: what the area is about is not in libdist yet
  const char* not_yet = "";  // a glob of ids whose cases are not in libdist yet
};

std::span<const Replayed> all_areas() noexcept;
// NULL for an area that this program does not know.
const Replayed* find_area(std::string_view name) noexcept;

}  // namespace golden
