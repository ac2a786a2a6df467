// SPDX-License-Identifier: Apache-2.0
// TCP connections as a listener sees them: listening on an address, accepting, and what the kernel knows
// about a connection that another part of the process reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/os/file.hpp"

namespace dist {

// The number of descriptors that this process may have open.
std::size_t descriptor_limit() noexcept;
// A descriptor that is only held in reserve: closing it makes one available when the process has no other one
// left.
Descriptor spare_descriptor() noexcept;
// Another descriptor of the same connection; closed if the process has no more descriptors.
Descriptor duplicate(const Descriptor& socket) noexcept;
// Like the function above, for a descriptor that another part of the process owns.
Descriptor duplicate(int socket) noexcept;

struct Listening {
  std::vector<Descriptor> sockets;
  int port = 0;
  std::string why;  // the reason if there are no sockets
};

// Listens on these IP addresses. Port 0: the system chooses one, the same for all of them. 0.0.0.0 and ::
// stand for all interfaces, over both versions of IP if the system has them. `user_timeout_ms`: how long sent
// data may stay unacknowledged before a connection breaks. Throws std::bad_alloc.
Listening listen_on(const std::vector<std::string>& hosts, const std::string& port, int user_timeout_ms);

enum class Accept { kAccepted, kNone, kNoDescriptor };
// Takes the next connection, if there is one. `peer` receives its address as an URI, like
// "ipv4:10.0.0.7:40000" or "ipv6:[fd00::7]:40000".
Accept accept_on(const Descriptor& listening, Descriptor* socket, std::string* peer);

// Shuts the connection down for all descriptors that refer to it. The last one to be closed resets it.
void shut_down(const Descriptor& socket) noexcept;
// Whether the connection has been shut down, by this process or by an error.
bool is_shut_down(const Descriptor& socket) noexcept;
// The number of bytes that have arrived, whether they have been read or not.
uint64_t received_bytes(const Descriptor& socket) noexcept;

// Waits until one of the descriptors is readable or has failed. `timeout_ms` < 0 waits without limit. `ready`
// receives, for each descriptor, whether it is readable or has failed.
void wait_readable(std::span<const int> descriptors, int timeout_ms, std::vector<bool>* ready);

}  // namespace dist
