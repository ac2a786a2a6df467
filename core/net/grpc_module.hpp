// SPDX-License-Identifier: Apache-2.0
// The interface between libdist and libdist-grpc.so: one table, found by name. The library is used only if
// its version string is identical to libdist's. The functions copy error texts to the caller, because each
// library has its own thread-local error record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/memory.hpp"
#include "core/base/os/file.hpp"
#include "core/cluster/link_security.hpp"
#include "core/net/calls.hpp"
#include "core/net/forming.hpp"
#include "core/net/transport.hpp"
#include "dist/experimental/links.h"

namespace dist {

#define DIST_GRPC_PROTOCOL "4"

// A validated configuration. Its texts are valid only during the call.
struct GrpcModuleConfig {
  std::span<const char* const> addresses;  // of all workers, in order
  int me;
  const char* bind_address;
  std::span<const Descriptor>
      sockets;  // descriptors that listen already; the module duplicates them. May be empty
  const char* digest;
  LinkSecurity security;
  bool forms;
  CameFrom came_from;
  std::span<const int> replicas;
  std::size_t credit;
  const dist_link_functions* links;  // the link module that moves data; NULL: gRPC
  Memory* memory;
};

// The same for clients and servers of calls.
struct CallModuleConfig {
  const char* bind_address;  // NULL: do not listen
  LinkSecurity security;
  CallLimits limits;
  CallHandler* handler;  // NULL if it does not listen
  Memory* memory;
};

struct GrpcModule {
  // "libdist 0.2.0, protocol 4". It stays the first field, whatever else changes.
  char version[64];
  // Disables gRPC's log output. Called if gRPC was loaded with the module and not by the host.
  void (*silence)() noexcept;
  // Listens and begins to connect to worker 0. On failure, `why` receives the reason.
  dist_status (*start)(const GrpcModuleConfig& config, Transport** out, void** handle, char* why,
                       std::size_t size) noexcept;
  // Network::form(), has_newcomers() and leave() of a network that forms generations.
  dist_status (*form)(void* handle, const Forming& wanted, Formed* out, char* why, std::size_t size) noexcept;
  bool (*has_newcomers)(void* handle) noexcept;
  Parting (*part)(void* handle) noexcept;
  // Waits until peers have received what was sent, for at most the lease, and then destroys the endpoint.
  void (*stop)(void* handle) noexcept;

  // Create and destroy a network of calls. Before stop_calls(), all channels must have been closed. It sends
  // the responses that have been given first, for at most the lease.
  dist_status (*start_calls)(const CallModuleConfig& config, CallNetwork** out, char* why,
                             std::size_t size) noexcept;
  void (*stop_calls)(CallNetwork* network) noexcept;
};

inline constexpr char kGrpcModuleEntry[] = "dist_grpc_module";
using GrpcModuleEntry = const GrpcModule* (*)();

}  // namespace dist
