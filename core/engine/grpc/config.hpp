// SPDX-License-Identifier: Apache-2.0
// The configuration of a worker's end of the network, and the gRPC credentials and settings made from it.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_builder.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/forming.hpp"
#include "core/engine/grpc/certificates.hpp"

namespace dist::grpc_link {

struct Config {
  std::vector<std::string> addresses;  // of all workers, in order
  int me = 0;
  std::string bind_address;
  std::string digest;
  std::string secret;
  std::string ca, certificate, key;  // PEM texts; empty: no TLS
  std::string version;
  bool forms = false;         // the workers that arrive take part, rather than all: Endpoint::form()
  CameFrom came_from;         // if it forms generations: where this worker was before
  std::vector<int> replicas;  // number of replicas of each worker as configured here; empty: not specified
  int64_t lease_ns = 0;
  std::size_t credit = 0;

  bool tls() const noexcept { return !ca.empty(); }
  Credentials credentials() const { return {ca, certificate, key}; }
  std::size_t most_message_bytes() const noexcept;
  const std::string& address(int worker) const { return addresses[static_cast<std::size_t>(worker)]; }
};

// The host part of "host:port" or "[host]:port".
std::string host_of(const std::string& address);

std::shared_ptr<grpc::Channel> make_channel(const Config& config, const std::string& address);
void configure(const Config& config, grpc::ServerBuilder& builder, int* port);
// The certificate of a connection's peer in PEM, which gRPC has verified. Empty without TLS.
std::string certificate_of(const grpc::AuthContext& context);

}  // namespace dist::grpc_link
