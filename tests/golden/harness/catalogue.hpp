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
  // A glob of ids whose programs are servers, or processes, that reach each other by gRPC. Each is played in a process of its
  // own, since gRPC forbids to fork one that has used it; none is in a transcript; and without gRPC none is played at all.
  const char* by_grpc = "";

  bool is_by_grpc(const std::string& id) const noexcept;
};

// Whether libdist-grpc.so is part of this build.
bool has_grpc() noexcept;

std::span<const Replayed> all_areas() noexcept;
// NULL for an area that this program does not know.
const Replayed* find_area(std::string_view name) noexcept;

}  // namespace golden
