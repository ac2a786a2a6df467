// SPDX-License-Identifier: Apache-2.0
// Plays cases in a separate process. If a case crashes or hangs, it is named, and a new process continues
// with the others.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "catalogue.hpp"

namespace golden {

struct Answer {
  enum class How { kPlayed, kDied, kHung } how = How::kPlayed;
  std::string text;  // play()'s line, or how the process ended
};

// Plays cases of an area and calls `answered` with each answer, in order. Cases that use gRPC have a process
// each. `longest` is a guard: a case that takes longer counts as hanging.
void run_cases(const Replayed& area, std::span<const Case* const> cases, std::chrono::seconds longest,
               const std::function<void(std::size_t index, const Answer& answer)>& answered);

}  // namespace golden
