// SPDX-License-Identifier: Apache-2.0
// Host names and IP addresses: what a name resolves to, which local address reaches a peer, and why this
// machine cannot listen on an address. IP addresses are texts: "10.0.0.7", "fd00::7", "fe80::7%eth0".
#pragma once

#include <string>
#include <vector>

#include "core/base/os/file.hpp"

namespace dist {

struct HostAddresses {
  std::vector<std::string> list;  // IP addresses, each once, in the system's order of preference
  std::string why;                // the reason if the list is empty
};

// Resolves a host name with getaddrinfo(), as other programs on this machine do. Blocks until the system
// answers; if name servers do not respond, this lasts until the system gives up. Throws std::bad_alloc.
HostAddresses look_up(const std::string& host);

// The local address from which the system sends to this IP address. Empty if there is no route. Sends no
// packet.
std::string address_towards(const std::string& address);

// Begins to connect a nonblocking socket to this IP address and port. When the attempt has ended, the socket
// becomes writable, and SO_ERROR is its result. Returns a closed descriptor on failure.
Descriptor begin_to_connect(const std::string& address, const std::string& port) noexcept;

// Describes, for messages, an errno of bind() or listen().
std::string why_not_bound(int error);

// Why no socket can be bound to this IP address and port; 0 stands for any port. Empty if a socket can be
// bound. "::" stands for all interfaces, with IPv4 only if the system has no IPv6.
std::string why_not_bind(const std::string& address, int port);

}  // namespace dist
