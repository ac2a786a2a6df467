// SPDX-License-Identifier: Apache-2.0
// Sends and receives as many bytes as a connected socket takes without blocking, and never raises a signal.
#pragma once

#include <cstddef>
#include <span>

namespace dist {

inline constexpr std::size_t kMostSocketParts = 4;

// From, and to, some parts of memory, one after another. How many bytes went or came; 0: none without waiting; -1: the
// connection is over.
std::ptrdiff_t send_now(int socket, std::span<const std::span<const std::byte>> parts) noexcept;
std::ptrdiff_t receive_now(int socket, std::span<const std::span<std::byte>> parts) noexcept;

}  // namespace dist
