// SPDX-License-Identifier: Apache-2.0
// Sends and receives as many bytes as a connected socket accepts without blocking, and never raises a signal.
// Also recognizes IP addresses.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace dist {

inline constexpr std::size_t kMostSocketParts = 4;

// Send or receive several parts of memory in order. Return the number of bytes, 0 if that would block, or -1
// if the connection is closed.
std::ptrdiff_t send_now(int socket, std::span<const std::span<const std::byte>> parts) noexcept;
std::ptrdiff_t receive_now(int socket, std::span<const std::span<std::byte>> parts) noexcept;

// Lets the system close a connection if data has not been acknowledged for this long, in milliseconds.
void limit_unacknowledged(int socket, unsigned milliseconds) noexcept;

// Whether the text is an IPv4 or IPv6 address.
bool is_ip_address(std::string_view text) noexcept;

}  // namespace dist
