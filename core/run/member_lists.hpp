// SPDX-License-Identifier: Apache-2.0
// Lists of a pool's members for messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/replicas.hpp"

namespace dist {

// Writes the members for which `members`, indexed by rank, is true: "replicas 1, 3" or "logical device 1 of replica 0".
// Returns their number; the text is "" if there are none.
int32_t list_members(const Naming& naming, std::span<const bool> members, std::span<char> text) noexcept;

// What a run on host threads waits for from one of its members.
enum class Missing : uint8_t { kNothing, kToCome, kToLeave };

// Writes "replica 1 has not come; replica 2 has not left". `members` is indexed by rank.
void list_missing(const Naming& naming, std::span<const Missing> members, std::span<char> text) noexcept;

// Appends to a list that is separated by semicolons.
void append_to_list(std::span<char> text, const char* item) noexcept;

}  // namespace dist
