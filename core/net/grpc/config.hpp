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

#include "core/net/forming.hpp"
#include "core/net/grpc/certificates.hpp"

namespace dist::grpc_link {

struct Config {
  std::vector<std::string> addresses;  // of all workers, in order
  int me = 0;                          // -1: not a worker
  std::string bind_address;
  std::vector<int> sockets;  // descriptors that listen already, valid until the start; may be empty
  std::string digest;
  std::string secret;
  std::string ca, certificate, key;                 // PEM texts; empty: no TLS
  std::string ca_file, certificate_file, key_file;  // the files that contain them; empty: not known
  std::string version;
  std::string transport = "grpc";  // or the name of the link module that moves data
  bool forms = false;              // only the workers that arrive take part: Endpoint::form()
  CameFrom came_from;              // if it forms generations: the previous generation of this worker
  std::vector<int> replicas;  // number of replicas of each worker as configured here; empty: not specified
  int64_t lease_ns = 0;
  std::size_t credit = 0;

  bool tls() const noexcept { return !ca.empty(); }
  Credentials credentials() const { return {ca, certificate, key, ca_file, certificate_file, key_file}; }
  std::size_t most_message_bytes() const noexcept;
  // A time limit for setting up a connection. In a job of many workers, all of them connect to each other at
  // the same time, and several may share a CPU.
  int64_t scaled_ns(int64_t ns) const noexcept {
    return ns * static_cast<int64_t>(1 + addresses.size() / 16);
  }
  const std::string& address(int worker) const { return addresses[static_cast<std::size_t>(worker)]; }
};

// host_of() and port_of() return the parts of "host:port" or "[host]:port".
std::string host_of(const std::string& address);
std::string port_of(const std::string& address);

// The gRPC target for these IP addresses and this port. It contains no host name, because gRPC must not
// resolve names.
std::string target_of(const std::vector<std::string>& hosts, const std::string& port);
// The IP address in gRPC's name of a peer, such as "ipv4:10.0.0.7:2222". Empty if the name contains no IP
// address.
std::string host_of_peer(const std::string& peer);

// Creates a channel to whichever of these IP addresses accepts a connection, at the port of `address`. With
// TLS, the certificate there must name the host of `address`.
std::shared_ptr<grpc::Channel> make_channel(const Config& config, const std::string& address,
                                            const std::vector<std::string>& hosts);
// Adds the credentials and the settings. The server receives its connections through the result: see
// listener.hpp.
std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> configure(const Config& config,
                                                                          grpc::ServerBuilder& builder);
// Returns the peer's certificate in PEM, followed by the chain that it has presented. gRPC has verified it.
// Empty without TLS.
std::string certificate_of(const grpc::AuthContext& context);

}  // namespace dist::grpc_link
