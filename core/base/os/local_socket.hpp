// SPDX-License-Identifier: Apache-2.0
// Sockets between processes of one machine, with names that exist only in memory. They keep the boundaries of messages
// and can pass a descriptor. Also identifies the machine and watches processes and descriptors. Nothing here blocks,
// except wait_readable().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/os/file.hpp"
#include "core/base/status.hpp"

namespace dist {

struct LocalProcess {
  int64_t id = 0;  // 0: this process cannot see it, because it is in another PID namespace
  uint64_t user = 0;
};

// Sockets in another network namespace are not found.
Status listen_locally(std::string_view name, Descriptor* out) noexcept;
Status connect_locally(std::string_view name, Descriptor* out) noexcept;
// The descriptor is not open if nobody has connected.
Descriptor accept_locally(const Descriptor& listener) noexcept;
// The process that connected, or that listens, as the system reports it.
bool process_at(const Descriptor& socket, LocalProcess* out) noexcept;

// Send or receive one message. Return its size, 0 if that would block, or -1 if the connection is closed. `pass` may be
// -1; `came` may be NULL.
std::ptrdiff_t send_message(const Descriptor& socket, std::span<const std::byte> message, int pass) noexcept;
std::ptrdiff_t receive_message(const Descriptor& socket, std::span<std::byte> room,
                               Descriptor* came) noexcept;

// A descriptor that becomes readable when the process ends. It is not open if the system has none.
Descriptor watch_process(int64_t process) noexcept;

// Waits until at least one of the descriptors is readable or closed, for at most timeout_ms (< 0: no limit), and notes
// which. Negative numbers are ignored.
struct Watched {
  int descriptor = -1;
  bool readable = false;
};
void wait_readable(std::span<Watched> all, int timeout_ms) noexcept;

// Identifies the running system: equal for two processes if and only if they share a kernel. False if it is unknown.
bool boot_identity(std::byte (&out)[16]) noexcept;
uint64_t this_user() noexcept;
bool random_fill(std::span<std::byte> to) noexcept;

}  // namespace dist
