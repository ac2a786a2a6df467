// SPDX-License-Identifier: Apache-2.0
// The areas, and the function that replays each of them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "play.hpp"

namespace golden {

struct Replayed {
  std::string_view area;
  ReplayFn replay;
  // A glob of ids whose programs have servers or processes that communicate by gRPC. Each is played in a
  // separate process, because a process that has used gRPC must not fork. They are not in transcripts, and
  // without gRPC they are not played.
  const char* by_grpc = "";

  bool is_by_grpc(const std::string& id) const noexcept;
};

// Whether libdist-grpc.so is part of this build.
bool has_grpc() noexcept;

std::span<const Replayed> all_areas() noexcept;
// Returns NULL for an unknown area.
const Replayed* find_area(std::string_view name) noexcept;

}  // namespace golden
