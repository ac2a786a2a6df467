// SPDX-License-Identifier: Apache-2.0
// The addresses on which a worker or server listens, and why it cannot.
#pragma once

#include <string>
#include <vector>

#include "core/net/grpc/config.hpp"

namespace dist::grpc_link {

// Whether the text is the IP address that stands for all interfaces.
bool is_any_address(const std::string& host) noexcept;

// Resolves Config::bind_address to IP addresses with a port; the server listens on all of them. "localhost"
// stands for the loopback addresses of this machine. Another name stands for its first address on this
// machine; the caller waits until it is resolved, for at most the lease. Returns an empty list on failure,
// with the reason in `why`.
std::vector<std::string> listening_addresses(const Config& config, std::string* why);

// The error message for a process that cannot listen for this reason.
std::string cannot_listen(const Config& config, const std::string& reason);
// The error message if gRPC cannot start a server.
std::string why_not_started(const Config& config);

}  // namespace dist::grpc_link
