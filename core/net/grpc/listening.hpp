// SPDX-License-Identifier: Apache-2.0
// The addresses on which a worker or server listens, and why it cannot.
#pragma once

#include <string>
#include <vector>

#include "core/net/grpc/config.hpp"

namespace dist::grpc_link {

// Whether the text is the IP address that stands for all interfaces.
bool is_any_address(const std::string& host) noexcept;

// Config::bind_address as IP addresses with a port, for the server to listen on all of them. "localhost" stands for the
// loopback addresses of this machine. Another name is resolved and stands for its first address on this machine; the
// caller waits for that, for at most the lease. Empty on failure, with the reason in `why`.
std::vector<std::string> listening_addresses(const Config& config, std::string* why);

// The error message if this process cannot listen, for this reason.
std::string cannot_listen(const Config& config, const std::string& reason);
// The error message if gRPC cannot start a server.
std::string why_not_started(const Config& config);

}  // namespace dist::grpc_link
